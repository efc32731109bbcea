use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P16",
    name: "quantization-needs-fp16",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "weights quantized in the optimizer step without fp16",
        "没有启用 fp16，却要在参数更新中量化权重",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true}, "different_groups": {}}}}"#,
    )
    .version("0.18.9")],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "compression_training": {"weight_quantization": {"shared_parameters": {"enabled": true, "quantize_weight_in_forward": true}, "different_groups": {}}}}"#,
    )
    .version("0.18.9")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed quantizes weights in the optimizer step (MoQ) only in fp16",
        "DeepSpeed 只在 fp16 下支持在参数更新中量化权重（MoQ）",
    ),
    why: Text::new(
        "Without `quantize_weight_in_forward`, DeepSpeed quantizes weights in the optimizer step. In bf16 and fp32, this raises an error at startup.",
        "没有设置 `quantize_weight_in_forward` 时，DeepSpeed 在参数更新中量化权重；bf16 和 fp32 下启动时会报错。",
    ),
    help: Text::new(
        "enable `fp16`, or add `\"quantize_weight_in_forward\": true`",
        "启用 `fp16`，或加上 `\"quantize_weight_in_forward\": true`",
    ),
};

const SHARED: [&str; 3] = ["compression_training", "weight_quantization", "shared_parameters"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let at = |key| [SHARED[0], SHARED[1], SHARED[2], key];
    // Newer engines do not read the section.
    let prefix = SHARED.join(".");
    let is_read = subject.schema().keys.iter().any(|key| key.path.starts_with(&prefix));
    let is_in_step =
        subject.is_on(at("enabled")) && !subject.is_on(at("quantize_weight_in_forward"));
    if is_read
        && is_in_step
        && subject.enabled("fp16") == Some(false)
        && let Some((_, member)) = subject.member(&at("enabled"))
    {
        found.push(at_member(&RULE, &WORDING, &at("enabled"), member));
    }
}
