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
    wordings: &[&WORDING, &OF_THE_TRAINER],
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
            r#"{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
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
        "with `{key}`, DeepSpeed rejects the `{class}` that the script passes",
        "开启 `{key}` 后，DeepSpeed 不接受脚本传入的 `{class}`",
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

static OF_THE_TRAINER: Wording = Wording {
    message: Text::new(
        "with `cpu_offload`, DeepSpeed rejects the optimizer that the HF Trainer creates",
        "开启 `cpu_offload` 后，DeepSpeed 不接受 HF Trainer 创建的优化器",
    ),
    why: Text::new(
        "accelerate replaces PyTorch's AdamW with `DeepSpeedCPUAdam` only for `offload_optimizer`. DeepSpeed still reads the deprecated `cpu_offload`, receives PyTorch's optimizer, and exits with an error.",
        "只有写了 `offload_optimizer`，accelerate 才会把 PyTorch 的 AdamW 换成 `DeepSpeedCPUAdam`。旧写法 `cpu_offload` 在 DeepSpeed 里仍然有效，收到的却是 PyTorch 的优化器，于是报错退出。",
    ),
    help: Text::new(
        "write `\"offload_optimizer\": {\"device\": \"cpu\"}` instead of `cpu_offload`",
        "把 `cpu_offload` 改成 `\"offload_optimizer\": {\"device\": \"cpu\"}`",
    ),
};

fn cpu_adam() -> Script {
    Script { client_optimizer: Some("DeepSpeedCPUAdam".to_owned()), ..Script::default() }
}

/// Classes of PyTorch that the engine does not take; what else a name means is not known.
const REFUSED: [&str; 4] = ["AdamW", "Adam", "SGD", "RMSprop"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let forced = subject.root.get("zero_force_ds_cpu_optimizer");
    let is_forced = forced.is_none_or(|node| zeropilot_config::python::is_true(&node.value));
    let is_offloaded =
        matches!(subject.device("offload_optimizer"), Some(Device::Cpu | Device::Nvme));
    let has_zero = matches!(subject.stage(), Some(1..=3));
    let Some((key, member)) = subject.offload_of_optimizer() else { return };
    if !(is_forced && is_offloaded && has_zero) {
        return;
    }
    match (subject.front_end, &subject.script.client_optimizer) {
        (FrontEnd::DeepSpeed, Some(class)) if is_refused(class) => found.push(
            at_member(&RULE, &WORDING, &[ZERO, key], member)
                .with("key", key)
                .with("class", class.as_str())
                .with("argument", "optimizer"),
        ),
        (FrontEnd::HfTrainer, None)
            if key == "cpu_offload" && subject.root.get("optimizer").is_none() =>
        {
            found.push(at_member(&RULE, &OF_THE_TRAINER, &[ZERO, key], member));
        }
        _ => {}
    }
}

fn is_refused(class: &str) -> bool {
    class.split_once("optim.").is_some_and(|(_, name)| REFUSED.contains(&name))
}
