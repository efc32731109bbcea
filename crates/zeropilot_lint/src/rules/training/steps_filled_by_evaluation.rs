use zeropilot_config::syntax::{Value as Json, parse_json};

use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView, Training};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

use super::evaluation_before_training::early_evaluation;

pub(crate) static RULE: Rule = Rule {
    code: "A07",
    name: "steps-filled-by-evaluation",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "evaluation before training sets the number of training steps to 0",
        "训练之前的评估把总步数填成了 0",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/transformers#29348"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", EVALUATES),
        ("ds.json", CONFIG),
    ])],
    good: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1, eval_on_start=True)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\ntrainer.train()\nprint(trainer.evaluate())\n"),
        ("ds.json", CONFIG),
    ])],
    is_no_op: false,
};

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "gradient_clipping": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto", "warmup_num_steps": 10, "warmup_type": "linear"}}}"#;

const EVALUATES: &str = "args = TrainingArguments(deepspeed='ds.json', per_device_train_batch_size=1)\nmodel = AutoModelForCausalLM.from_pretrained('m')\ntrainer = Trainer(model, args)\nprint(trainer.evaluate())\ntrainer.train()\n";

static WORDING: Wording = Wording {
    message: Text::new(
        "`{call}` before `train` sets `scheduler.params.total_num_steps` to 0",
        "`train` 之前的 `{call}` 会把 `scheduler.params.total_num_steps` 填成 0",
    ),
    why: Text::new(
        "The Trainer fills in `\"auto\"` at its first call, and evaluation has no training steps. `train` then exits with `ds scheduler.params.total_num_steps=0 vs hf num_training_steps (calculated)=…`.",
        "Trainer 在第一次调用时填写 `\"auto\"`，而评估没有训练步数。之后 `train` 会报错退出：`ds scheduler.params.total_num_steps=0 vs hf num_training_steps (calculated)=…`。",
    ),
    help: Text::new(
        "set `eval_on_start=True` to evaluate inside `train`, or remove the `scheduler` section, so that the Trainer creates its own scheduler",
        "设置 `eval_on_start=True`，在 `train` 里先评估一次；或删掉 `scheduler` 配置段，用 Trainer 自己的调度器",
    ),
};

/// Whether the number of steps waits to be filled.
pub(super) fn waits_for_steps(job: &JobView<'_>, training: &Training<'_>) -> bool {
    let config = training.launch.given.config.as_ref().and_then(|named| named.text.as_deref());
    let document = config.and_then(|name| parse_json(&(job.files)(name)?).ok());
    let steps = ["scheduler", "params", "total_num_steps"];
    document.is_some_and(|document| {
        let node = steps.iter().try_fold(document.root(), |node, key| node.get(key));
        node.is_some_and(|node| matches!(&node.value, Json::Str(text) if text == "auto"))
    })
}

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for training in job.trainings().filter(|training| training.stage() == Some(3)) {
        if let Some(call) = early_evaluation(training.script)
            && waits_for_steps(job, &training)
        {
            let diagnostic =
                Diagnostic::new(&RULE, &WORDING, "", call.span).with("call", call.callee.as_str());
            found.at(&training.place(call.span), diagnostic);
        }
    }
}
