use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P13",
    name: "autocast-with-quantized-weights",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new(
        "`torch_autocast` with quantized weights",
        "`torch_autocast` 与量化权重同时使用",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "torch_autocast": {"enabled": true, "dtype": "bfloat16"}, "zero_optimization": {"stage": 3, "zero_quantized_weights": true}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "zero_quantized_weights": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`torch_autocast` and `zero_quantized_weights` cannot be used together",
        "`torch_autocast` 与 `zero_quantized_weights` 不能同时使用",
    ),
    why: Text::new(
        "If `torch_autocast` and `zero_quantized_weights` are both on, DeepSpeed raises an error at startup.",
        "如果同时开启 `torch_autocast` 和 `zero_quantized_weights`，DeepSpeed 启动时会报错。",
    ),
    help: Text::new(
        "turn off `torch_autocast` or `zero_quantized_weights`; with `bf16` instead of autocast, DeepSpeed can quantize the weights",
        "关掉 `torch_autocast` 或 `zero_quantized_weights`；改用 `bf16` 代替 autocast 就可以量化权重",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_read = subject.reads_section("torch_autocast");
    if subject.zero_switch("zero_quantized_weights") == Some(true)
        && subject.enabled("torch_autocast") == Some(true)
        && is_read
        && let Some((_, member)) = subject.member(&["torch_autocast", "enabled"])
    {
        found.push(at_member(&RULE, &WORDING, &["torch_autocast", "enabled"], member));
    }
}
