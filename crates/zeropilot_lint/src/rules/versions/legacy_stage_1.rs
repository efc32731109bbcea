use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::remove_member;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V10",
    name: "legacy-stage-1",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new(
        "an old stage-1 implementation that DeepSpeed has removed",
        "已移除的旧版 stage 1 实现",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1, "legacy_stage1": true}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1, "legacy_stage1": false}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`legacy_stage1` selects an implementation that DeepSpeed has removed",
        "`legacy_stage1` 对应的旧实现已被 DeepSpeed 移除",
    ),
    why: Text::new(
        "DeepSpeed raises an error at startup and asks you to downgrade to a version before 0.5.9.",
        "DeepSpeed 启动时报错，并要求降级到 0.5.9 之前的版本。",
    ),
    help: Text::new("remove `legacy_stage1`", "删掉 `legacy_stage1`"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(1..=3), Some(zero)) = (subject.stage(), subject.zero()) else { return };
    let Some(member) = zero.member("legacy_stage1") else { return };
    if member.value.value == Value::Bool(true) {
        let title = Text::new("remove `{key}`", "删掉 `{key}`");
        let fix =
            remove_member(subject, zero, member.key_span).map(|edit| Fix::guess(title, vec![edit]));
        found.push(at_member(&RULE, &WORDING, &[ZERO, "legacy_stage1"], member).fix(fix));
    }
}
