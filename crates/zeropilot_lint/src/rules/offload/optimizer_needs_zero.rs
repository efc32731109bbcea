use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F15",
    name: "offload-optimizer-needs-zero",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new(
        "`offload_optimizer` without ZeRO",
        "没有启用 ZeRO，却写了 `offload_optimizer`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 1, "offload_optimizer": {"device": "cpu"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 0, "offload_optimizer": {"device": "none"}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`offload_optimizer` needs ZeRO stage 1, 2 or 3, but the stage is 0",
        "`offload_optimizer` 需要 ZeRO stage 1、2 或 3，而现在是 stage 0",
    ),
    why: Text::new(
        "DeepSpeed switches to its CPU optimizer, which rejects parameters on a GPU. Only ZeRO keeps a copy of the parameters on the CPU.",
        "DeepSpeed 会换成 CPU 优化器，而 CPU 优化器不接受 GPU 上的参数；只有 ZeRO 才会在 CPU 上保留一份参数。",
    ),
    help: Text::new(
        "add `\"stage\": 2` (or 1, or 3), or remove `offload_optimizer`",
        "加上 `\"stage\": 2`（或 1、3），或删掉 `offload_optimizer`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let forced = subject.root.get("zero_force_ds_cpu_optimizer");
    let is_forced = forced.is_none_or(|node| zeropilot_config::python::is_true(&node.value));
    let device = subject.device("offload_optimizer");
    let is_offloaded = matches!(device, Some(Device::Cpu | Device::Nvme));
    // Without any stage the whole section is off, and that is said once.
    let says_stage = subject.node([ZERO, "stage"]).is_some();
    if subject.stage() != Some(0) || !is_offloaded || !is_forced || !says_stage {
        return;
    }
    if let Some((_, member)) = subject.member(&[ZERO, "offload_optimizer"]) {
        found.push(at_member(&RULE, &WORDING, &[ZERO, "offload_optimizer"], member));
    }
}
