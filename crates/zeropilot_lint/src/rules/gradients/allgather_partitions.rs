use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::reading::remove_idle;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G14",
    name: "allgather-partitions-unused",
    group: Group::Gradients,
    severity: Severity::Warning,
    summary: Text::new(
        "`allgather_partitions: false` has no effect",
        "`allgather_partitions: false` 不生效",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_partitions": false}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "allgather_partitions": true}}"#,
    )],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`allgather_partitions` is false, but no code in DeepSpeed uses it",
        "`allgather_partitions` 设为 false，但 DeepSpeed 里没有任何代码用它",
    ),
    why: Text::new(
        "The key is a leftover from the first version of ZeRO. DeepSpeed all-gathers the updated parameters either way.",
        "这是第一版 ZeRO 留下的键；不管它是什么值，DeepSpeed 都会用 all-gather 聚合更新后的参数。",
    ),
    help: Text::new("remove `allgather_partitions`", "删掉 `allgather_partitions`"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let (Some(1..=3), Some(zero)) = (subject.stage(), subject.zero()) else { return };
    let Some(member) = zero.member("allgather_partitions") else { return };
    if member.value.value == Value::Bool(false) {
        found.push(
            at_member(&RULE, &WORDING, &[ZERO, "allgather_partitions"], member)
                .fix(remove_idle(subject, zero, member)),
        );
    }
}
