use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::reading::remove_idle;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F18",
    name: "super-offload-needs-stage-3",
    group: Group::Offload,
    severity: Severity::Warning,
    summary: Text::new("`super_offload` below stage 3", "stage 低于 3 时写了 `super_offload`"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "super_offload": true}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 0, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "super_offload": true}}}"#,
    )],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`super_offload` has no effect in ZeRO stage {stage}",
        "`super_offload` 在 ZeRO stage {stage} 下不生效",
    ),
    why: Text::new(
        "Only stage 3 has a SuperOffload optimizer; other stages use ordinary CPU offload.",
        "只有 stage 3 有 SuperOffload 优化器，其他 stage 用的仍是普通的 CPU 卸载。",
    ),
    help: Text::new(
        "use stage 3, or remove `super_offload`",
        "改用 stage 3，或删掉 `super_offload`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 0..=2) = subject.stage() else { return };
    let path = [ZERO, "offload_optimizer", "super_offload"];
    let Some((object, member)) = subject.member(&path) else { return };
    let is_known = subject.version >= EngineVersion::V0_18;
    if is_known && member.value.value == Value::Bool(true) {
        found.push(
            at_member(&RULE, &WORDING, &path, member)
                .with("stage", usize::from(stage))
                .fix(remove_idle(subject, object, member)),
        );
    }
}
