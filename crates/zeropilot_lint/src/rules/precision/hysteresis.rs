use zeropilot_config::syntax::{Member, Value};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::{at_member, number};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P24",
    name: "hysteresis-without-zero",
    group: Group::Precision,
    severity: Severity::Note,
    summary: Text::new(
        "loss-scale hysteresis has no effect in stage 0",
        "stage 0 下 loss scale 的 hysteresis 不生效",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed deepspeed/runtime/fp16/fused_optimizer.py, _update_scale"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "hysteresis": 4}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": true, "hysteresis": 4}, "zero_optimization": {"stage": 1}}"#,
        ),
        Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true, "hysteresis": 2}}"#),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "{idle} has no effect in ZeRO stage 0: the first overflow halves the loss scale",
        "{idle} 在 ZeRO stage 0 下不生效：第一次溢出就会把 loss scale 减半",
    ),
    why: Text::new(
        "The fp16 optimizers in stage 0 halve the loss scale at the first overflow. Only stages 1 to 3 count overflows.",
        "stage 0 的 fp16 优化器遇到溢出就立即把 loss scale 减半，不计溢出次数；stage 1 到 3 才会计数。",
    ),
    help: Text::new(
        "remove {idle}, or use stage 1, which waits for the set number of overflows",
        "删掉 {idle}，或改用 stage 1，溢出达到设定次数才会减半",
    ),
};

/// Whether a key asks for something else than DeepSpeed's default.
fn is_asked_for(member: &Member) -> bool {
    match member.key.as_str() {
        "hysteresis" => number(&member.value).is_some_and(|count| count != 2.0),
        "consecutive_hysteresis" => member.value.value == Value::Bool(true),
        _ => false,
    }
}

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_fixed = subject.node(["fp16", "loss_scale"]).is_some_and(|scale| {
        // A placeholder may become anything.
        number(scale).is_none_or(|scale| scale > 0.0)
    });
    if subject.stage() != Some(0) || subject.enabled("fp16") != Some(true) || is_fixed {
        return;
    }
    let idle: Vec<&Member> =
        subject.members_at(["fp16"]).iter().filter(|member| is_asked_for(member)).collect();
    let Some(first) = idle.first() else { return };
    let names = idle.iter().map(|member| member.key.clone()).collect();
    let told = at_member(&RULE, &WORDING, &["fp16", &first.key], first);
    found.push(told.with("idle", Argument::Words(names)));
}
