use zeropilot_config::problem::Problem;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K08",
    name: "deprecated-beside-replacement",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a deprecated key next to its replacement", "弃用的键和它的替代键同时出现"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#912", "deepspeedai/DeepSpeedExamples#172"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": true, "offload_optimizer": {"device": "cpu"}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{key}` is deprecated, and its replacement `{new}` is set as well",
        "`{key}` 已弃用，而替代它的键 `{new}` 也设置了",
    ),
    why: Text::new(
        "DeepSpeed cannot determine which of the two keys applies and rejects the config.",
        "DeepSpeed 无法判断以哪个为准，因此报错。",
    ),
    help: Text::new("remove `{key}`", "删掉 `{key}`"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, new: &str, subject: &Subject<'_>) -> Diagnostic {
    let pair = subject.member(&problem.path.0);
    let fix = pair
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix::safe(Text::new("remove `{key}`", "删掉 `{key}`"), vec![edit]));
    let found = Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("new", new)
        .fix(fix);
    match pair.and_then(|(object, _)| object.member(new)) {
        Some(other) => found.related(other.key_span, Text::new("the replacement", "替代键")),
        None => found,
    }
}
