use zeropilot_config::front_end::{Arguments, FrontEnd, Number, Problem, TrainerArguments};
use zeropilot_config::problem::KeyPath;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "I08",
    name: "unusable-argument",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "the framework cannot use the value of a training argument",
        "训练框架无法使用某个训练参数的值",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"zero_optimization": {"stage": 2}}"#)
        .read_by(FrontEnd::HfTrainer)
        .arguments(negative)],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::HfTrainer)],
    is_no_op: false,
};

fn negative() -> Arguments {
    let trainer =
        TrainerArguments { warmup_steps: Some(Number::Int(-1)), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "the framework cannot use the value of the training argument `{argument}`",
        "训练框架无法使用训练参数 `{argument}` 的值",
    ),
    why: Text::new(
        "The framework checks the argument and raises an error.",
        "训练框架会检查这个参数并报错。",
    ),
    help: Text::new(
        "set `{argument}` to a value that the framework accepts",
        "把 `{argument}` 设为训练框架接受的值",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, argument: &str) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, KeyPath::default(), problem.span).with("argument", argument)
}
