use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F03",
    name: "nvme-without-path",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new("NVMe offload without `nvme_path`", "NVMe 卸载没有写 `nvme_path`"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#2624"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": null}}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/local_nvme"}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` offloads to NVMe but has no `nvme_path`",
        "`{path}` 要卸载到 NVMe，却没有写 `nvme_path`",
    ),
    why: Text::new(
        "DeepSpeed builds the path of its swap files from `nvme_path`. Without this key, the run fails after the model has been loaded.",
        "DeepSpeed 用 `nvme_path` 拼出卸载文件的路径；缺少时会报错，而此时模型已经加载完。",
    ),
    help: Text::new(
        "add `\"nvme_path\"` with a directory on a local disk",
        "加上 `\"nvme_path\"`，指向本地磁盘上的目录",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if subject.stage() != Some(3) {
        return;
    }
    for section in ["offload_param", "offload_optimizer"] {
        if subject.device(section) != Some(Device::Nvme) {
            continue;
        }
        let path = subject.node([ZERO, section, "nvme_path"]);
        if path.is_none_or(|node| node.value == Value::Null)
            && let Some((_, member)) = subject.member(&[ZERO, section])
        {
            found.push(at_member(&RULE, &WORDING, &[ZERO, section], member));
        }
    }
}
