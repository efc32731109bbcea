use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::reading::remove_idle;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F01",
    name: "offload-param-needs-stage-3",
    group: Group::Offload,
    severity: Severity::Warning,
    summary: Text::new("`offload_param` below stage 3", "stage 低于 3 时写了 `offload_param`"),
    wordings: &[&WORDING],
    sources: &["wenet-e2e/wenet#2499", "deepspeedai/DeepSpeed#1403", "deepspeedai/DeepSpeed#2977"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_param": {"device": "none"}}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`offload_param` has no effect in ZeRO stage {stage}: only stage 3 offloads parameters",
        "`offload_param` 在 ZeRO stage {stage} 下不生效：只有 stage 3 才会卸载参数",
    ),
    why: Text::new(
        "In stages below 3, every rank keeps all parameters on its GPU. DeepSpeed reads `offload_param` but does not use it.",
        "stage 低于 3 时，每个 rank 都在 GPU 上保留全部参数；DeepSpeed 会读取 `offload_param`，但不使用。",
    ),
    help: Text::new(
        "use stage 3, or remove `offload_param`",
        "改用 stage 3，或删掉 `offload_param`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 0..=2) = subject.stage() else { return };
    let goes_somewhere =
        matches!(subject.device("offload_param"), Some(Device::Cpu | Device::Nvme));
    let (Some(zero), true) = (subject.zero(), goes_somewhere) else { return };
    if let Some(member) = zero.member("offload_param") {
        found.push(
            at_member(&RULE, &WORDING, &[ZERO, "offload_param"], member)
                .with("stage", usize::from(stage))
                .fix(remove_idle(subject, zero, member)),
        );
    }
}
