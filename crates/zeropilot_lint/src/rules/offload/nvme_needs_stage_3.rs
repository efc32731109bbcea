use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F02",
    name: "nvme-needs-stage-3",
    group: Group::Offload,
    severity: Severity::Warning,
    summary: Text::new(
        "NVMe offload of the optimizer below stage 3",
        "stage 低于 3 时把优化器状态卸载到 NVMe",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#1403"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "in ZeRO stage {stage}, `nvme` means CPU offload: the optimizer states use host memory",
        "在 ZeRO stage {stage} 下，`nvme` 等同于 CPU 卸载：优化器状态会占用主机内存",
    ),
    why: Text::new(
        "In stages 1 and 2, DeepSpeed checks only whether the optimizer is offloaded, not the target device. It does not use `nvme_path`.",
        "在 stage 1/2 下，DeepSpeed 只检查是否卸载，不检查卸载到哪里，也不使用 `nvme_path`。",
    ),
    help: Text::new(
        "use stage 3 for NVMe, or set `device` to `cpu` and provide enough host memory",
        "要用 NVMe 请改用 stage 3；否则把 `device` 设为 `cpu`，并留足主机内存",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 1..=2) = subject.stage() else { return };
    let path = [ZERO, "offload_optimizer", "device"];
    if subject.device("offload_optimizer") != Some(Device::Nvme) {
        return;
    }
    if let Some(node) = subject.node(path) {
        let title = Text::new("write `cpu`, which has the same effect", "写成 `cpu`，效果相同");
        let fix = Fix::safe(title, vec![Edit::new(node.span, "\"cpu\"")]);
        found.push(
            at_value(&RULE, &WORDING, &path, node).with("stage", usize::from(stage)).fix(Some(fix)),
        );
    }
}
