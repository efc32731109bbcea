use zeropilot_config::front_end::{Arguments, FrontEnd, Problem, TrainerArguments};
use zeropilot_config::problem::KeyPath;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I07",
    name: "conflicting-arguments",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new("two training arguments conflict", "两个训练参数互相冲突"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"zero_optimization": {"stage": 2}}"#)
        .read_by(FrontEnd::HfTrainer)
        .arguments(both)],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::HfTrainer)],
    is_no_op: false,
};

fn both() -> Arguments {
    let trainer =
        TrainerArguments { fp16: Some(true), bf16: Some(true), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "the training arguments `{first}` and `{second}` cannot be used together",
        "训练参数 `{first}` 和 `{second}` 不能同时使用",
    ),
    why: Text::new(
        "`TrainingArguments` raises an error before it reads the config.",
        "`TrainingArguments` 在读取配置之前就会报错。",
    ),
    help: Text::new(
        "keep only one of `{first}` and `{second}`",
        "`{first}` 和 `{second}` 只保留一个",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, first: &str, second: &str) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, KeyPath::default(), problem.span)
        .with("first", first)
        .with("second", second)
}
