use zeropilot_config::syntax::Member;
use zeropilot_config::syntax::Value;

use super::hpz_divides::size;
use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::ZERO;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "X02",
    name: "zeropp-needs-stage-3",
    group: Group::ZeroPlusPlus,
    severity: Severity::Warning,
    summary: Text::new("ZeRO++ below stage 3", "stage 低于 3 时使用 ZeRO++"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeedExamples#717", "deepspeedai/DeepSpeed#4886"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "zero_quantized_weights": true, "zero_hpz_partition_size": 8}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "zero_quantized_weights": false, "zero_hpz_partition_size": 1}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "zero_quantized_weights": true, "zero_hpz_partition_size": 8}}"#,
        )
        .ranks(16),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "ZeRO stage {stage} does not use {idle}: ZeRO++ needs stage 3",
        "{idle} 在 ZeRO stage {stage} 下不生效：ZeRO++ 需要 stage 3",
    ),
    why: Text::new(
        "ZeRO++ changes how DeepSpeed gathers partitioned parameters and reduces their gradients; stages below 3 do not partition parameters.",
        "ZeRO++ 改变参数分片的聚合方式和梯度的规约方式；stage 低于 3 时不切分参数。",
    ),
    help: Text::new("use stage 3, or remove {idle}", "改用 stage 3，或删掉 {idle}"),
};

const SWITCHES: [&str; 3] =
    ["zero_quantized_weights", "zero_quantized_gradients", "zero_quantized_nontrainable_weights"];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some(stage @ 0..=2) = subject.stage() else { return };
    let mut idle: Vec<&Member> = Vec::new();
    for member in subject.members_at([ZERO]) {
        let is_on =
            SWITCHES.contains(&member.key.as_str()) && member.value.value == Value::Bool(true);
        if is_on || (member.key == "zero_hpz_partition_size" && size(subject).is_some()) {
            idle.push(member);
        }
    }
    let Some(first) = idle.first() else { return };
    let names = idle.iter().map(|member| member.key.clone()).collect();
    found.push(
        Diagnostic::new(&RULE, &WORDING, ZERO, first.key_span)
            .with("idle", Argument::Words(names))
            .with("stage", usize::from(stage)),
    );
}
