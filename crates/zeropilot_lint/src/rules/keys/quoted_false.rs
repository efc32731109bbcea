use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K23",
    name: "quoted-false",
    group: Group::Keys,
    severity: Severity::Warning,
    summary: Text::new("a quoted `false` counts as true", "加了引号的 `false` 会被当成 true"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "memory_breakdown": "false"}"#),
        Example::new(
            r#"{"train_batch_size": 8, "flops_profiler": {"enabled": true, "detailed": "False"}}"#,
        ),
    ],
    good: &[
        Example::new(r#"{"train_batch_size": 8, "memory_breakdown": false}"#),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": "false"}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is the string `{value}`, which counts as true",
        "`{path}` 写的是字符串 `{value}`，会被当成 true",
    ),
    why: Text::new(
        "DeepSpeed uses this key without conversion, and in Python every non-empty string is true.",
        "DeepSpeed 不转换这个键，而在 Python 里非空字符串都算 true。",
    ),
    help: Text::new("set `{path}` to false, without quotes", "把 `{path}` 设为 false，不加引号"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for member in subject.members() {
        look(subject, &[&member.key], member, found);
        if let Value::Object(members) = &member.value.value {
            for inner in members {
                look(subject, &[&member.key, &inner.key], inner, found);
            }
        }
    }
}

fn look(subject: &Subject<'_>, path: &[&str], member: &Member, found: &mut Vec<Diagnostic>) {
    let Value::Str(text) = &member.value.value else { return };
    if !matches!(text.to_lowercase().as_str(), "false" | "no" | "off") {
        return;
    }
    let key = subject.schema().raw_key(&path.join("."));
    let is_switch = key.is_some_and(|key| {
        key.choices.is_none()
            && key.accepts.is_none()
            && matches!(key.default, Some(serde_json::Value::Bool(_)))
    });
    if is_switch {
        let title = Text::new("write false", "改为 false");
        let fix = Fix::guess(title, vec![Edit::new(member.value.span, "false")]);
        found.push(
            at_value(&RULE, &WORDING, path, &member.value)
                .with("value", subject.text_of(member.value.span))
                .fix(Some(fix)),
        );
    }
}
