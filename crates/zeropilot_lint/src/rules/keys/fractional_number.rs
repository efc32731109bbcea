//! Older accelerate and transformers wrote such numbers themselves, as `0.9 * hidden * hidden`.

use num_bigint::BigInt;
use num_traits::FromPrimitive;
use zeropilot_config::problem::Problem;
use zeropilot_config::syntax::{Node, Value};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K05",
    name: "fractional-number",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a fractional number where an integer is needed", "需要整数的地方写了小数"),
    wordings: &[&WORDING],
    sources: &[
        "deepspeedai/DeepSpeed#6525",
        "huggingface/accelerate#2814",
        "huggingface/transformers#36081",
        "hiyouga/LlamaFactory#5252",
    ],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 15099494.4}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 15099494}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5e8}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be an integer, not {value}",
        "`{path}` 必须是整数，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed accepts `5e8`, whose value is an integer, but rejects a number with a fractional part. Older accelerate and transformers versions wrote such values themselves.",
        "DeepSpeed 接受 `5e8` 这样值为整数的浮点写法，但不接受带小数部分的数。旧版 accelerate 和 transformers 会自己写出这种值。",
    ),
    help: Text::new("remove the fractional part of `{path}`", "去掉 `{path}` 的小数部分"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let node = subject.node(problem.path.0.iter().map(String::as_str));
    let whole = match node {
        Some(Node { value: Value::Float(value), .. }) if *value >= 1.0 => {
            BigInt::from_f64(value.trunc())
        }
        _ => None,
    };
    let title = Text::new("write {whole}", "改成 {whole}");
    let fix = whole
        .as_ref()
        .filter(|_| problem.span.start < problem.span.end)
        .map(|whole| Fix::safe(title, vec![Edit::new(problem.span, whole.to_string())]));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("value", shortened(subject.text_of(problem.span)))
        .with("whole", whole.map_or_else(String::new, |whole| whole.to_string()))
        .fix(fix)
}
