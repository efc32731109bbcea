use zeropilot_config::front_end::{FrontEnd, ModelFacts, Problem};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A06",
    name: "auto-without-hidden-size",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "bucket sizes are `\"auto\"`, but the model has no hidden size",
        "模型没有 hidden size，通信桶大小却写了 `\"auto\"`",
    ),
    wordings: &[&WORDING],
    sources: &["zjunlp/OntoProtein#11"],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .model(no_size),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e7}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .model(no_size),
    ],
    is_no_op: false,
};

fn no_size() -> Option<ModelFacts> {
    Some(ModelFacts::without_sizes())
}

static WORDING: Wording = Wording {
    message: Text::new(
        "{keys} cannot be filled in: the model's config has no hidden size",
        "无法填写 {keys}：模型的 config 里没有 hidden size",
    ),
    why: Text::new(
        "The framework computes {keys} from `hidden_size` and raises a `ValueError` if the model's config does not have this field.",
        "训练框架根据 `hidden_size` 计算 {keys}；模型的 config 里没有 `hidden_size` 时会抛 `ValueError`。",
    ),
    help: Text::new(
        "set {keys} in elements, not bytes. For hidden size h, common values are h² for `reduce_bucket_size`, 0.9·h² for `stage3_prefetch_bucket_size` and 10·h for `stage3_param_persistence_threshold`",
        "把 {keys} 写成具体数值（单位是元素个数，不是字节）：hidden size 为 h 时，通常 `reduce_bucket_size` 取 h²，`stage3_prefetch_bucket_size` 取 0.9·h²，`stage3_param_persistence_threshold` 取 10·h",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, keys: &[&'static str]) -> Diagnostic {
    let keys = keys.iter().map(|&key| key.to_owned()).collect();
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span)
        .with("keys", Argument::Words(keys))
}
