//! `"auto"` takes the argument's value. Nobody knows which of the two was meant, so the fix is a guess.

use zeropilot_config::front_end::{Arguments, FrontEnd, Problem, TrainerArguments};
use zeropilot_config::python::PyValue;
use zeropilot_config::syntax::{Span, Value};

use super::warmup_zero;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A08",
    name: "contradicts-training-arguments",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "a config value contradicts a training argument",
        "配置里的值与训练参数不一致",
    ),
    wordings: &[&WORDING],
    sources: &["hendrycks/apps#9", "shibing624/MedicalGPT#191", "hiyouga/LlamaFactory#201"],
    examples: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::HfTrainer)
    .arguments(two_per_device)],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::HfTrainer)
    .arguments(two_per_device)],
    is_no_op: false,
};

fn two_per_device() -> Arguments {
    let trainer =
        TrainerArguments { per_device_train_batch_size: Some(2), ..TrainerArguments::default() };
    Arguments { trainer, ..Arguments::default() }
}

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is {written}, but the training argument `{argument}` is {expected}",
        "`{path}` 是 {written}，但训练参数 `{argument}` 是 {expected}",
    ),
    why: Text::new(
        "The HF Trainer compares the config with the training arguments when training starts and raises a `ValueError` if they differ.",
        "HF Trainer 在训练开始时比较配置和训练参数，不一致就抛 `ValueError`。",
    ),
    help: Text::new(
        "write `\"auto\"` in the config to use the argument's value, or write the same value in both places",
        "在配置里写 `\"auto\"` 以使用训练参数的值，或者把两处改成相同的值",
    ),
};

/// Words the refusal.
pub(crate) fn explain(
    problem: &Problem,
    written: &Value,
    expected: &Value,
    argument: &str,
    subject: &Subject<'_>,
) -> Diagnostic {
    let words = Words { written: value(written), expected: value(expected), argument };
    if warmup_zero::applies(problem, written, expected) {
        return warmup_zero::explain(problem, &words);
    }
    let span = problem.span;
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), span)
        .with("written", in_file(subject, span).unwrap_or(words.written))
        .with("expected", words.expected)
        .with("argument", argument)
        .fix(auto(span))
}

fn in_file(subject: &Subject<'_>, span: Span) -> Option<String> {
    let text = subject.text_of(span);
    (!text.is_empty()).then(|| shortened(text))
}

/// Replaces a value by the placeholder.
pub(crate) fn auto(span: Span) -> Option<Fix> {
    let title = Text::new("write `\"auto\"`", "改成 `\"auto\"`");
    (span.start < span.end).then(|| Fix::guess(title, vec![Edit::new(span, "\"auto\"")]))
}

/// The two values of a mismatch.
pub(crate) struct Words<'a> {
    pub(crate) written: String,
    pub(crate) expected: String,
    pub(crate) argument: &'a str,
}

/// A value as a file would hold it.
fn value(value: &Value) -> String {
    match PyValue::from(value) {
        PyValue::None => "null".to_owned(),
        PyValue::Bool(value) => value.to_string(),
        PyValue::Int(value) => value.to_string(),
        PyValue::Float(value) => format!("{value:?}"),
        PyValue::Str(value) => format!("\"{value}\""),
        PyValue::List(items) => {
            let items: Vec<String> = items
                .iter()
                .map(|item| item.number().map_or_else(|| "…".to_owned(), |_| number(item)))
                .collect();
            format!("[{}]", items.join(", "))
        }
        PyValue::Dict(_) => "{…}".to_owned(),
    }
}

fn number(value: &PyValue) -> String {
    match value {
        PyValue::Int(value) => value.to_string(),
        PyValue::Float(value) => format!("{value:?}"),
        _ => "…".to_owned(),
    }
}
