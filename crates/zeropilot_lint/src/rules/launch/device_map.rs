use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::rules::launch::model_first::{STAGE_3, loads_a_model};
use zeropilot_job::Place;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "Z03",
    name: "device-map",
    group: Group::Construction,
    severity: Severity::Error,
    summary: Text::new("`device_map` under ZeRO stage 3", "ZeRO stage 3 下使用 `device_map`"),
    wordings: &[&WORDING],
    sources: &[
        "huggingface/peft#306",
        "huggingface/accelerate#2543",
        "hiyouga/LlamaFactory#2920",
        "QwenLM/Qwen#833",
    ],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m', device_map='auto')\nTrainer(model, args).train()\n"),
        ("ds.json", STAGE_3),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m', device_map=None)\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m', device_map=choose())\nTrainer(model, args).train()\n"),
            ("ds.json", STAGE_3),
        ]),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "transformers rejects `device_map` under ZeRO stage 3",
        "ZeRO stage 3 下，transformers 不接受 `device_map`",
    ),
    why: Text::new(
        "Under ZeRO stage 3, DeepSpeed decides which rank holds which shard. transformers exits with `DeepSpeed Zero-3 is not compatible with passing a device_map`.",
        "ZeRO stage 3 下，由 DeepSpeed 决定每个 rank 保存哪个分片，transformers 会报错退出：`DeepSpeed Zero-3 is not compatible with passing a device_map`。",
    ),
    help: Text::new("remove `device_map`", "去掉 `device_map`"),
};

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    let loads = job.calls_under_stage_3().filter(|(call, _)| loads_a_model(&call.callee));
    for (call, name) in loads {
        let map = call.keyword("device_map");
        if let Some((_, span)) = map.filter(|(value, _)| value.is_something()) {
            let diagnostic = Diagnostic::new(&RULE, &WORDING, "", span);
            found.at(&Place::in_file(name, span), diagnostic);
        }
    }
}
