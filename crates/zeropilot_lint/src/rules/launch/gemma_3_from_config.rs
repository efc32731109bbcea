use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::STAGE_3;
use zeropilot_job::{Call, Place, Value};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z10",
    name: "gemma-3-from-config",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new(
        "Gemma 3 built from a config under ZeRO stage 3",
        "ZeRO stage 3 下从 config 构建 Gemma 3",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers src/transformers/models/gemma3/modeling_gemma3.py"],
    examples: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = Gemma3ForConditionalGeneration(config)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nconfig = Gemma3Config()\nmodel = AutoModelForImageTextToText.from_config(config)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = Gemma3ForConditionalGeneration.from_pretrained('google/gemma-3-4b-it')\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nconfig = Qwen2_5_VLConfig()\nmodel = AutoModelForImageTextToText.from_config(config)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "Gemma 3 cannot be built from a config under ZeRO stage 3",
        "ZeRO stage 3 下不能从 config 构建 Gemma 3",
    ),
    why: Text::new(
        "transformers partitions the weights while it builds the model, but Gemma 3 initializes them by their shape. The run exits with `ValueError: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions` (transformers 5.22); `from_pretrained` works.",
        "transformers 在构建模型时就切分权重，而 Gemma 3 要按权重的形状初始化，因此报错退出：`ValueError: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions`（transformers 5.22）。`from_pretrained` 可以正常加载。",
    ),
    help: Text::new(
        "save the new model once without DeepSpeed and load it with `from_pretrained`, or use stage 2",
        "先不用 DeepSpeed 构建并保存模型，再用 `from_pretrained` 加载；或改用 stage 2",
    ),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for (call, name) in job.calls_under_stage_3().filter(|(call, _)| builds_gemma_3(call)) {
        let diagnostic = Diagnostic::new(&RULE, &WORDING, "", call.span);
        found.at(&Place::in_file(name, call.span), diagnostic);
    }
}

/// Whether a call builds Gemma 3 with new weights, by its class or by the class of its config.
fn builds_gemma_3(call: &Call) -> bool {
    let class = "Gemma3ForConditionalGeneration";
    match call.name() {
        "from_config" => {
            call.callee.contains("AutoModelForImageTextToText")
                && matches!(call.argument(0, "config"), Some((Value::Call(config), _)) if config.ends_with("Gemma3Config"))
        }
        "_from_config" => call.object().ends_with(class),
        name => name == class,
    }
}
