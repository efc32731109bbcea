use zeropilot_config::problem::Problem;
use zeropilot_config::syntax::Span;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K19",
    name: "missing-key",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a required key is missing", "缺少必需的键"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "data_efficiency": {"enabled": true, "data_sampling": {"enabled": true, "curriculum_learning": {"enabled": true}}}}"#,
    )],
    good: &[Example::new(r#"{"train_batch_size": 8, "data_efficiency": {"enabled": true}}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{path}` needs the key `{missing}`", "`{path}` 缺少 `{missing}`"),
    why: Text::new(
        "DeepSpeed reads this key from the section without checking that it exists, and fails.",
        "DeepSpeed 不检查这个键是否存在就直接读取，缺少时会报错。",
    ),
    help: Text::new("add `{missing}`, or remove `{path}`", "补上 `{missing}`，或删掉 `{path}`"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, missing: &str) -> Diagnostic {
    let opening = Span::new(problem.span.start, problem.span.end.min(problem.span.start + 1));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), opening).with("missing", missing)
}
