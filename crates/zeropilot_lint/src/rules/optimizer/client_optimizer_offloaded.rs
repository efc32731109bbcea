use zeropilot_config::front_end::FrontEnd;

use super::client_optimizer::torch_adam;
use crate::diagnostic::Diagnostic;
use crate::reading::{Device, ZERO, at_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::script::Script;
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O01",
    name: "offload-of-a-client-optimizer",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "the script passes an optimizer that does not support offload",
        "脚本传入的优化器不支持卸载",
    ),
    wordings: &[&WORDING],
    sources: &[
        "OptimalScale/LMFlow#693",
        "deepspeedai/Megatron-DeepSpeed#298",
        "deepspeedai/DeepSpeed#2971",
        "deepspeedai/DeepSpeed#7524",
    ],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
    )
    .script(torch_adam)],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .script(cpu_adam),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "zero_force_ds_cpu_optimizer": false}"#,
        )
        .script(torch_adam),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "with `offload_optimizer`, DeepSpeed rejects the `{class}` that the script passes",
        "开启 `offload_optimizer` 后，DeepSpeed 不接受脚本传入的 `{class}`",
    ),
    why: Text::new(
        "The CPU updates optimizer states in host memory. For this, DeepSpeed accepts only its own `DeepSpeedCPUAdam` and `DeepSpeedCPULion`, and exits with an error for any other optimizer.",
        "优化器状态放在主机内存里，由 CPU 更新。此时 DeepSpeed 只接受自带的 `DeepSpeedCPUAdam` 和 `DeepSpeedCPULion`，传别的会报错退出。",
    ),
    help: Text::new(
        "use `DeepSpeedCPUAdam` as `{argument}`, or add an `optimizer` section instead, or set `\"zero_force_ds_cpu_optimizer\": false` at the top level",
        "`{argument}` 改用 `DeepSpeedCPUAdam`，或改在配置里写 `optimizer` 配置段，或在顶层写 `\"zero_force_ds_cpu_optimizer\": false`",
    ),
};

fn cpu_adam() -> Script {
    Script { client_optimizer: Some("DeepSpeedCPUAdam".to_owned()), ..Script::default() }
}

/// Classes of PyTorch that the engine does not take; what else a name means is not known.
const REFUSED: [&str; 4] = ["AdamW", "Adam", "SGD", "RMSprop"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(class) = &subject.script.client_optimizer else { return };
    let is_torch = class.split_once("optim.").is_some_and(|(_, name)| REFUSED.contains(&name));
    let forced = subject.root.get("zero_force_ds_cpu_optimizer");
    let is_forced = forced.is_none_or(|node| zeropilot_config::python::is_true(&node.value));
    let is_offloaded =
        matches!(subject.device("offload_optimizer"), Some(Device::Cpu | Device::Nvme));
    let has_zero = matches!(subject.stage(), Some(1..=3));
    let path = [ZERO, "offload_optimizer"];
    if let Some((_, member)) = subject.member(&path)
        && is_torch
        && is_forced
        && is_offloaded
        && has_zero
        && subject.front_end == FrontEnd::DeepSpeed
    {
        found.push(
            at_member(&RULE, &WORDING, &path, member)
                .with("class", class.as_str())
                .with("argument", "optimizer"),
        );
    }
}
