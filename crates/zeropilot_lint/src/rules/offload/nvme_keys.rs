use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Node;
use zeropilot_config::syntax::Value;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F16",
    name: "nvme-keys-without-nvme",
    group: Group::Offload,
    severity: Severity::Note,
    summary: Text::new("NVMe keys without NVMe offload", "没有用 NVMe 卸载，却写了 NVMe 的键"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "buffer_count": 5, "max_in_cpu": 1e9}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "nvme_path": "/nvme", "pipeline_read": true}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu", "pin_memory": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 5}}}"#,
        ),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "only NVMe offload uses {idle} in `{path}`, but the device is `{device}`",
        "`{path}` 里的 {idle} 只对 NVMe 卸载有效，而 device 是 `{device}`",
    ),
    why: Text::new(
        "These keys set the buffers, pipelining and path of the NVMe swapper, which DeepSpeed does not create here.",
        "这些键设置 NVMe 卸载模块的缓冲区、流水线和路径，DeepSpeed 在这里不会创建这个模块。",
    ),
    help: Text::new(
        "remove {idle}, or set `device` to `nvme` in stage 3",
        "删掉 {idle}，或在 stage 3 下把 `device` 设为 `nvme`",
    ),
};

const ONLY_NVME: [(&str, &[&str]); 2] = [
    ("offload_param", &["nvme_path", "buffer_count", "buffer_size", "max_in_cpu"]),
    (
        "offload_optimizer",
        &["nvme_path", "buffer_count", "pipeline_read", "pipeline_write", "fast_init"],
    ),
];

#[cfg(test)]
#[test]
fn the_text_of_every_key_says_that_it_needs_nvme() {
    for (section, only) in ONLY_NVME {
        let section = format!("{ZERO}.{section}");
        for key in only {
            let text = zeropilot_config::keys::text(&format!("{section}.{key}")).expect(key);
            assert_eq!(text.needs[&format!("{section}.device")], ["nvme"], "{key}");
        }
    }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    for (section, only) in ONLY_NVME {
        if subject.device(section) != Some(Device::Cpu) {
            continue;
        }
        let members = subject.members_at([ZERO, section]).iter();
        let idle: Vec<&Member> = members
            .filter(|member| only.contains(&member.key.as_str()) && means_something(&member.value))
            .collect();
        let Some(first) = idle.first() else { continue };
        let names = idle.iter().map(|member| member.key.clone()).collect();
        found.push(
            Diagnostic::new(&RULE, &WORDING, format!("{ZERO}.{section}").as_str(), first.key_span)
                .with("idle", Argument::Words(names))
                .with("device", "cpu"),
        );
    }
}

/// Templates write `null` and `false` for what they do not want.
fn means_something(node: &Node) -> bool {
    !matches!(node.value, Value::Null | Value::Bool(false))
}
