use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P06",
    name: "gradient-accumulation-type",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "an unsupported data type for gradient accumulation",
        "梯度累积的数据类型不受支持",
    ),
    wordings: &[&UNKNOWN, &MIXED],
    sources: &["deepspeedai/DeepSpeed#2352", "deepspeedai/DeepSpeed#2768"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "float33"}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 2}, "data_types": {"grad_accum_dtype": "fp32"}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "bf16"}}"#,
        ),
    ],
    is_no_op: false,
};

static UNKNOWN: Wording = Wording {
    message: Text::new(
        "DeepSpeed does not support the type `{value}` for `grad_accum_dtype`",
        "DeepSpeed 不支持 `grad_accum_dtype` 的值 `{value}`",
    ),
    why: Text::new(
        "DeepSpeed checks `grad_accum_dtype` only when it creates the engine, after the model has been loaded, and exits with an error.",
        "DeepSpeed 到创建 engine 时才检查 `grad_accum_dtype` 并报错退出，此时模型已经加载完。",
    ),
    help: Text::new(
        "set `grad_accum_dtype` to `fp32`, `bf16` or `fp16`",
        "把 `grad_accum_dtype` 设为 `fp32`、`bf16` 或 `fp16`",
    ),
};

static MIXED: Wording = Wording {
    message: Text::new(
        "without ZeRO, gradients accumulate in the model's type, {model}; DeepSpeed rejects `{value}`",
        "不用 ZeRO 时，梯度只能按模型的类型 {model} 累积，DeepSpeed 不接受 `{value}`",
    ),
    why: Text::new(
        "Only the ZeRO optimizers keep gradients in a separate type. DeepSpeed reports an unsupported combination of model type and gradient accumulation type, and exits.",
        "只有 ZeRO 的优化器才会用单独的类型保存梯度。DeepSpeed 会报告模型类型与累积类型的组合不受支持，然后退出。",
    ),
    help: Text::new(
        "use ZeRO stage 1 or higher, or remove `grad_accum_dtype`",
        "使用 ZeRO stage 1 及以上，或删掉 `grad_accum_dtype`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["data_types", "grad_accum_dtype"];
    let (Some(node), Some(value)) = (subject.node(path), subject.text_at(path)) else { return };
    if value == "auto" {
        return;
    }
    let Some(wanted) = kind(value) else {
        found.push(at_value(&RULE, &UNKNOWN, &path, node).with("value", value));
        return;
    };
    let model = match (subject.enabled("fp16"), subject.bf16()) {
        (Some(true), _) => "fp16",
        (Some(false), Some(true)) => "bf16",
        (Some(false), Some(false)) if subject.front_end == FrontEnd::DeepSpeed => "fp32",
        _ => return,
    };
    // Older engines have an optimizer for bf16 with fp32 gradients without ZeRO, too.
    let is_kept = (model, wanted) == ("bf16", "fp32") && subject.version < EngineVersion::V0_18;
    if subject.stage() == Some(0) && wanted != model && !is_kept {
        found.push(at_value(&RULE, &MIXED, &path, node).with("value", value).with("model", model));
    }
}

/// A type by any of the names the engine takes.
pub(crate) fn kind(name: &str) -> Option<&'static str> {
    match name {
        "torch.float16" | "fp16" | "float16" | "half" => Some("fp16"),
        "torch.float32" | "fp32" | "float32" | "float" => Some("fp32"),
        "torch.bfloat16" | "bf16" | "bfloat16" => Some("bf16"),
        "torch.int8" | "int8" => Some("int8"),
        _ => None,
    }
}
