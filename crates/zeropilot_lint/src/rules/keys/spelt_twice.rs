use zeropilot_config::problem::Problem;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K07",
    name: "spelt-twice",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("one field is set under two names", "同一个字段用两个名字各写了一遍"),
    wordings: &[&WORDING],
    sources: &["modelscope/ms-swift#3697"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 1000, "prefetch_bucket_size": 1000}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 1000}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{key}` is the same field as `{used}`", "`{key}` 和 `{used}` 是同一个字段"),
    why: Text::new(
        "DeepSpeed accepts either name, but rejects the config if both are present.",
        "两个名字 DeepSpeed 都接受，但同时出现就会报错。",
    ),
    help: Text::new("keep `{used}` and remove `{key}`", "保留 `{used}`，删掉 `{key}`"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, used: &str, subject: &Subject<'_>) -> Diagnostic {
    let title = Text::new("remove `{key}`", "删掉 `{key}`");
    let pair = subject.member(&problem.path.0);
    let fix = pair
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix::safe(title, vec![edit]));
    let found = Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("used", used)
        .fix(fix);
    match pair.and_then(|(object, _)| object.member(used)) {
        Some(other) => found.related(other.key_span, Text::new("the other name", "另一个名字")),
        None => found,
    }
}
