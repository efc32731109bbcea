use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::at_member;
use crate::reading::remove_idle;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F17",
    name: "aio-without-nvme",
    group: Group::Offload,
    severity: Severity::Note,
    summary: Text::new("an `aio` section without NVMe", "没有使用 NVMe，却写了 `aio` 配置段"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "aio": {"block_size": 1048576}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}, "aio": {"block_size": 1048576}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "checkpoint": {"writer": {"type": "FAST"}}, "aio": {"block_size": 1048576}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`aio` has no effect: this config offloads nothing to NVMe",
        "`aio` 不生效：这个配置没有卸载到 NVMe",
    ),
    why: Text::new(
        "`aio` sets how DeepSpeed reads and writes swap files, and this config uses no swap files.",
        "`aio` 设置 DeepSpeed 如何读写卸载到 NVMe 的文件，而这个配置没有这样的文件。",
    ),
    help: Text::new(
        "remove `aio`, or offload to `nvme` in stage 3",
        "删掉 `aio`，或在 stage 3 下卸载到 `nvme`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(member) = subject.root.member("aio") else { return };
    let is_off = |section| match subject.device(section) {
        Some(Device::Nvme) => subject.stage().is_some_and(|stage| stage < 3),
        Some(_) => true,
        None => false,
    };
    // The checkpoint writers use it too, and so can scripts that move tensors themselves.
    let has_writer = subject.node(["checkpoint", "writer"]).is_some();
    let is_open = matches!(member.value.value, Value::Object(_));
    if is_open && !has_writer && is_off("offload_param") && is_off("offload_optimizer") {
        let fix = remove_idle(subject, subject.root, member);
        found.push(at_member(&RULE, &WORDING, &["aio"], member).fix(fix));
    }
}
