use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P11",
    name: "master-weights-need-offload",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "16-bit master weights without optimizer offload",
        "使用 16 位主权重，但没有卸载优化器",
    ),
    wordings: &[&WORDING, &TORCH],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"enabled": true, "fp16_master_weights_and_grads": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001, "torch_adam": true}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}, "optimizer": {"type": "AdamW", "params": {"lr": 0.0001, "torch_adam": true}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}, "fp16": {"enabled": true, "fp16_master_weights_and_grads": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true, "bf16_master_weights_and_grads": true, "bf16_optimizer_states": true}}"#,
        ),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` needs CPU offload of the optimizer: `offload_optimizer` with device `cpu`",
        "`{path}` 需要把优化器卸载到 CPU：`offload_optimizer` 的 device 为 `cpu`",
    ),
    why: Text::new(
        "Only DeepSpeed's CPU Adam updates 16-bit master weights. DeepSpeed checks this when it creates the ZeRO optimizer and exits with an error.",
        "只有 DeepSpeed 的 CPU Adam 能更新 16 位主权重。DeepSpeed 创建 ZeRO 优化器时会检查，不满足就报错退出。",
    ),
    help: Text::new(
        "add `\"offload_optimizer\": {{\"device\": \"cpu\"}}` to `zero_optimization`, or remove `{path}`",
        "在 `zero_optimization` 里加上 `\"offload_optimizer\": {{\"device\": \"cpu\"}}`，或删掉 `{path}`",
    ),
};

static TORCH: Wording = Wording {
    message: Text::new(
        "`{path}` does not work with `torch_adam`",
        "`{path}` 不能与 `torch_adam` 一起使用",
    ),
    why: Text::new(
        "Only DeepSpeed's CPU Adam updates 16-bit master weights, and `torch_adam` replaces it with PyTorch's Adam. DeepSpeed checks this when it creates the ZeRO optimizer and exits with an error.",
        "只有 DeepSpeed 的 CPU Adam 能更新 16 位主权重，而 `torch_adam` 会把它换成 PyTorch 的 Adam。DeepSpeed 创建 ZeRO 优化器时会检查，不满足就报错退出。",
    ),
    help: Text::new("remove `torch_adam` or `{path}`", "删掉 `torch_adam` 或 `{path}`"),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let stage = subject.stage();
    let is_torch = subject.is_on(["optimizer", "params", "torch_adam"]);
    let (wording, is_offloaded) = match subject.device("offload_optimizer") {
        Some(Device::None) => (&WORDING, false),
        Some(Device::Cpu) if is_torch => (&TORCH, true),
        _ => return,
    };
    if !matches!(stage, Some(1..=3)) {
        return;
    }
    let written = |section, key| {
        let node = subject.node([section, key]);
        node.is_some_and(|node| node.value == Value::Bool(true))
    };
    let fp16 = ("fp16", "fp16_master_weights_and_grads");
    let bf16 = ("bf16", "bf16_master_weights_and_grads");
    for (section, key) in [fp16, bf16] {
        // Since 0.17 the key counts even in a section that is not enabled.
        let counts =
            subject.enabled(section) == Some(true) || subject.version >= EngineVersion::V0_17;
        if !written(section, key) || !counts || !subject.reads(section, key) {
            continue;
        }
        // bf16 states may stay on the GPU together with bf16 master weights. Since 0.19 DeepSpeed checks them all the
        // same where the optimizer is offloaded.
        let states_are_checked = is_offloaded && subject.version >= EngineVersion::V0_19;
        if section == "bf16" && written("bf16", "bf16_optimizer_states") && !states_are_checked {
            continue;
        }
        let works = match section {
            "fp16" => &subject.schema().behaviours.fp16_master_weights_stages,
            _ => &subject.schema().behaviours.bf16_master_weights_stages,
        };
        // A stage that loading refuses is another rule's finding.
        if stage.is_some_and(|stage| works.contains(&i64::from(stage)))
            && let Some((_, member)) = subject.member(&[section, key])
        {
            found.push(at_member(&RULE, wording, &[section, key], member));
        }
    }
}
