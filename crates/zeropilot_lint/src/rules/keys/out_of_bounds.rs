use zeropilot_config::problem::{Bound, Problem};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K16",
    name: "out-of-bounds",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a number outside its limits", "数值超出允许范围"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": -1}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "reduce_bucket_size": 1}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be {bound}, not {value}",
        "`{path}` 必须{bound}，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed checks the limits of this key and rejects the config.",
        "DeepSpeed 会检查这个键的取值范围，超出就报错。",
    ),
    help: Text::new("set `{path}` to a number that is {bound}", "把 `{path}` 设为{bound} 的数"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, bound: Bound, subject: &Subject<'_>) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("bound", Argument::Bound(bound))
        .with("value", shortened(subject.text_of(problem.span)))
}
