use crate::diagnostic::Diagnostic;
use crate::job_view::{Findings, JobView};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use serde_json::Value;
use zeropilot_text::Text;

use super::frozen_models;

pub(crate) static RULE: Rule = Rule {
    code: "A14",
    name: "auto-for-frozen-model",
    group: Group::Auto,
    severity: Severity::Note,
    summary: Text::new(
        "`\"auto\"` sizes are not filled in for a reference or teacher model",
        "对参考模型或教师模型，写成 `\"auto\"` 的大小不会被填写",
    ),
    wordings: &[&WORDING],
    sources: &["huggingface/trl trl/models/utils.py, prepare_deepspeed"],
    examples: &[Example::job("torchrun --nproc_per_node 2 t.py").files(&[
        ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
        ("ds.json", WITH_AUTO),
    ])],
    good: &[
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = DPOConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nDPOTrainer(model='m', args=args).train()\n"),
            ("ds.json", WITH_NUMBERS),
        ]),
        Example::job("torchrun --nproc_per_node 2 t.py").files(&[
            ("t.py", "args = SFTConfig(deepspeed='ds.json', per_device_train_batch_size=1)\nSFTTrainer(model='m', args=args).train()\n"),
            ("ds.json", WITH_AUTO),
        ]),
    ],
    is_no_op: false,
};

const WITH_AUTO: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true, "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}}"#;

const WITH_NUMBERS: &str = r#"{"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true, "stage3_prefetch_bucket_size": 15099494, "stage3_param_persistence_threshold": 40960}}"#;

static WORDING: Wording = Wording {
    message: Text::new(
        "the reference or teacher model gets DeepSpeed's defaults where the config has `\"auto\"`",
        "配置里写 `\"auto\"` 的地方，参考模型或教师模型得到的是 DeepSpeed 的默认值",
    ),
    why: Text::new(
        "The Trainer prepares frozen models before it fills in `\"auto\"`, and DeepSpeed drops keys that are still `\"auto\"`. The trained model gets sizes based on its hidden size; the frozen model prefetches 5e7 elements and has a persistence threshold of 1e5.",
        "Trainer 在填写 `\"auto\"` 之前就准备好冻结的模型，而 DeepSpeed 会丢掉值仍为 `\"auto\"` 的键。被训练的模型按 hidden size 计算这些大小，冻结的模型则预取 5e7 个元素，常驻阈值为 1e5。",
    ),
    help: Text::new(
        "write numbers instead of `\"auto\"` in `zero_optimization`, as `zeropilot plan` does",
        "在 `zero_optimization` 里写具体数字，不要写 `\"auto\"`；`zeropilot plan` 就是这样写的",
    ),
};

/// Sizes that a stage 3 engine takes from the config.
const SIZES: [&str; 2] = ["stage3_prefetch_bucket_size", "stage3_param_persistence_threshold"];

pub(crate) fn check(job: &JobView<'_>, found: &mut Findings) {
    for task in frozen_models::launches(job).filter(|task| task.stage == Some(3)) {
        if task.config().is_some_and(|config| leaves_sizes(&config)) {
            found.at(&task.place, Diagnostic::new(&RULE, &WORDING, "", task.place.span));
        }
    }
}

/// Whether a config leaves a size to the front end.
fn leaves_sizes(config: &Value) -> bool {
    let zero = config.get("zero_optimization");
    zero.is_some_and(|zero| SIZES.iter().any(|key| zero.get(key) == Some(&Value::from("auto"))))
}
