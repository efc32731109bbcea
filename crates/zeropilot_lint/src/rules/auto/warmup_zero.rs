use zeropilot_config::front_end::{Arguments, FrontEnd, Number, Problem, TrainerArguments};
use zeropilot_config::syntax::Value;

use super::mismatch::{Words, auto};
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A09",
    name: "warmup-zero",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new("a warmup of 0 steps never matches the HF Trainer's value", "warmup 写成 0 步，必定与 HF Trainer 的值不一致"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(no_warmup),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto", "warmup_type": "linear"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer)
        .arguments(no_warmup),
    ],
    is_no_op: false,
};

fn no_warmup() -> Arguments {
    let trainer =
        TrainerArguments { warmup_steps: Some(Number::Int(0)), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is {written}, but the HF Trainer compares it with {expected}",
        "`{path}` 是 {written}，但 HF Trainer 用来比较的值是 {expected}",
    ),
    why: Text::new(
        "DeepSpeed rejects a warmup of 0 steps, so transformers compares the key with a value of at least 1. A value of 0 therefore never matches.",
        "DeepSpeed 不接受 0 步 warmup，所以 transformers 至少按 1 比较；写 0 一定不一致。",
    ),
    help: Text::new("set `{path}` to `\"auto\"` or 1", "把 `{path}` 设为 `\"auto\"` 或 1"),
};

/// Whether a mismatch is this one.
pub(crate) fn applies(problem: &Problem, written: &Value, expected: &Value) -> bool {
    let is =
        |value: &Value, number: i32| matches!(value, Value::Int(value) if *value == number.into());
    problem.path == "scheduler.params.warmup_num_steps" && is(written, 0) && is(expected, 1)
}

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, words: &Words<'_>) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span)
        .with("written", words.written.clone())
        .with("expected", words.expected.clone())
        .with("argument", words.argument)
        .fix(auto(problem.span))
}
