use zeropilot_config::constructors::Constructors;

use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O29",
    name: "compressed-optimizer-with-zero",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new("a 1-bit optimizer with ZeRO", "1-bit 优化器与 ZeRO 同时使用"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}}, "zero_optimization": {"stage": 1}}"#,
    )
    .version("0.18.9")],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "optimizer": {"type": "OneBitAdam", "params": {"lr": 1e-3}}}"#,
    )
    .version("0.18.9")],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{name}` does not support ZeRO, but the stage is {stage}",
        "`{name}` 不能与 ZeRO 同时使用，而当前是 stage {stage}",
    ),
    why: Text::new(
        "1-bit Adam, 0/1 Adam and 1-bit Lamb compress whole gradients. DeepSpeed rejects them when any ZeRO stage is on.",
        "1-bit Adam、0/1 Adam 和 1-bit Lamb 压缩的是完整梯度。只要开启 ZeRO，DeepSpeed 就会报错。",
    ),
    help: Text::new("use stage 0, or `AdamW`", "改用 stage 0，或换成 `AdamW`"),
};

/// Optimizers that send compressed gradients, in lower case.
const COMPRESSED: [&str; 3] = ["onebitadam", "zerooneadam", "onebitlamb"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name, node)) = subject.optimizer_type() else { return };
    let is_compressed = COMPRESSED.iter().any(|known| name.eq_ignore_ascii_case(known));
    // Newer engines have none of them, which another rule reports.
    let is_known = Constructors::of(subject.version).knows_optimizer(name);
    if let Some(stage @ 1..=3) = subject.stage()
        && is_compressed
        && is_known
    {
        found.push(
            at_value(&RULE, &WORDING, &["optimizer", "type"], node)
                .with("name", name)
                .with("stage", usize::from(stage)),
        );
    }
}
