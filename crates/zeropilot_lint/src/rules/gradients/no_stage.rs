use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::insert_members;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G11",
    name: "zero-without-stage",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "`zero_optimization` without a `stage`",
        "`zero_optimization` 没有写 `stage`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"overlap_comm": true, "contiguous_gradients": true}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1, "overlap_comm": true}}"#,
        ),
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {}}"#),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`zero_optimization` has no `stage`, so ZeRO is off",
        "`zero_optimization` 里没有 `stage`，ZeRO 没有启用",
    ),
    why: Text::new(
        "The default is stage 0. DeepSpeed reads the other keys in `zero_optimization`, but they have no effect.",
        "默认是 stage 0。DeepSpeed 会读取 `zero_optimization` 的其他键，但都不生效。",
    ),
    help: Text::new("add `\"stage\": 2` (or 1, or 3)", "加上 `\"stage\": 2`（或 1、3）"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((_, member)) = subject.member(&[ZERO]) else { return };
    let Value::Object(members) = &member.value.value else { return };
    if !members.is_empty() && member.value.get("stage").is_none() {
        let title = Text::new("add `\"stage\": 2`", "加上 `\"stage\": 2`");
        let fix = insert_members(subject, &member.value, &[("stage", "2")])
            .map(|edit| Fix::guess(title, vec![edit]));
        found.push(at_member(&RULE, &WORDING, &[ZERO], member).fix(fix));
    }
}
