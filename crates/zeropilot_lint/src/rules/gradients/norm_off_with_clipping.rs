use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::reading::Device;
use crate::reading::ZERO;
use crate::reading::at_member;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G13",
    name: "gradient-norm-needed",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "`compute_grad_norm` is off, but the norm is needed",
        "关闭了 `compute_grad_norm`，却又需要梯度范数",
    ),
    wordings: &[&CLIPPING, &OFFLOAD, &BF16],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "compute_grad_norm": false}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2, "compute_grad_norm": false, "offload_optimizer": {"device": "cpu"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "gradient_clipping": 0.0, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1, "compute_grad_norm": false}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2, "compute_grad_norm": false}}"#,
    )],
    is_no_op: false,
};

static CLIPPING: Wording = Wording {
    message: Text::new(
        "`compute_grad_norm` is false, but DeepSpeed clips gradients at {clipping}, which needs the norm",
        "`compute_grad_norm` 为 false，但梯度按 {clipping} 裁剪，需要用到范数",
    ),
    why: Text::new(
        "The ZeRO optimizer raises an error at startup unless `gradient_clipping` is 0. In DeepSpeed {version}, the default of this key is 1.0.",
        "除非 `gradient_clipping` 为 0，否则创建 ZeRO 优化器时会报错。在 DeepSpeed {version} 里，这个键的默认值是 1.0。",
    ),
    help: Text::new(
        "write `\"gradient_clipping\": 0.0`, or remove `compute_grad_norm`",
        "写 `\"gradient_clipping\": 0.0`，或删掉 `compute_grad_norm`",
    ),
};

static OFFLOAD: Wording = Wording {
    message: Text::new(
        "`compute_grad_norm` is false, which does not work with `offload_optimizer`",
        "`compute_grad_norm` 为 false 时不能用 `offload_optimizer`",
    ),
    why: Text::new(
        "With optimizer offload, the ZeRO optimizer does not support `compute_grad_norm: false` and raises an error at startup.",
        "启用优化器卸载时，ZeRO 优化器不支持 `compute_grad_norm: false`，启动时报错。",
    ),
    help: Text::new(
        "remove `compute_grad_norm` or `offload_optimizer`",
        "删掉 `compute_grad_norm` 或 `offload_optimizer`",
    ),
};

static BF16: Wording = Wording {
    message: Text::new(
        "`compute_grad_norm: false` does not work with bf16 and fp32 gradient accumulation in stage 1",
        "stage 1 在 bf16 下用 fp32 累积梯度时，不能设置 `compute_grad_norm: false`",
    ),
    why: Text::new(
        "For fp32 gradient accumulation in bf16, stage 1 uses the BF16 optimizer, which always computes the norm. DeepSpeed exits with a `ValueError` at startup.",
        "bf16 下用 fp32 累积梯度时，stage 1 使用 BF16 优化器，它总要计算范数。DeepSpeed 启动时以 `ValueError` 退出。",
    ),
    help: Text::new(
        "remove `compute_grad_norm` or `data_types.grad_accum_dtype`",
        "删掉 `compute_grad_norm`，或删掉 `data_types.grad_accum_dtype`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(member) = subject.zero_member("compute_grad_norm") else { return };
    let is_off = member.value.value == Value::Bool(false);
    if !is_off || !matches!(subject.stage(), Some(1..=2)) {
        return;
    }
    let path = [ZERO, "compute_grad_norm"];
    let clipping = match subject.root.get("gradient_clipping") {
        None => Some("1.0"),
        Some(node) if number(node).is_some_and(|clipping| clipping > 0.0) => {
            Some(subject.text_of(node.span))
        }
        Some(_) => None,
    };
    if let Some(clipping) = clipping {
        found.push(
            at_member(&RULE, &CLIPPING, &path, member)
                .with("clipping", clipping)
                .with("version", subject.version.name()),
        );
    }
    let in_fp32 = subject.text_at(["data_types", "grad_accum_dtype"]);
    if subject.stage() == Some(1)
        && subject.bf16() == Some(true)
        && in_fp32.is_some_and(|name| matches!(name, "fp32" | "float32" | "float"))
        && subject.device("offload_optimizer") == Some(Device::None)
        && clipping.is_none()
    {
        found.push(at_member(&RULE, &BF16, &path, member));
    }
    if matches!(subject.device("offload_optimizer"), Some(Device::Cpu | Device::Nvme)) {
        found.push(at_member(&RULE, &OFFLOAD, &path, member));
    }
}
