use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P10",
    name: "static-loss-scale",
    group: Group::Precision,
    severity: Severity::Note,
    summary: Text::new(
        "keys for a dynamic loss scale, although the loss scale is fixed",
        "固定 loss scale 时写了动态调整的键",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 1000, "hysteresis": 2}}"#,
    )],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 0, "loss_scale_window": 1000, "hysteresis": 2}}"#,
        ),
        Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 128}}"#),
    ],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`loss_scale` is fixed at {scale}, so DeepSpeed does not use {idle}",
        "`loss_scale` 固定为 {scale}，{idle} 不生效",
    ),
    why: Text::new(
        "Keys such as `loss_scale_window` control the dynamic loss scale, which is on only if `loss_scale` is 0.",
        "`loss_scale_window` 等键控制 loss scale 的动态调整，只有 `loss_scale` 为 0 时才会用到。",
    ),
    help: Text::new(
        "set `loss_scale` to 0 for a dynamic loss scale, or remove {idle}",
        "想要动态调整就把 `loss_scale` 设为 0，否则删掉 {idle}",
    ),
};

const DYNAMIC: [&str; 5] = [
    "initial_scale_power",
    "loss_scale_window",
    "hysteresis",
    "consecutive_hysteresis",
    "min_loss_scale",
];

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let path = ["fp16", "loss_scale"];
    let Some(scale) = subject.node(path) else { return };
    if subject.enabled("fp16") != Some(true) || number(scale).is_none_or(|scale| scale <= 0.0) {
        return;
    }
    let members = subject.members_at(["fp16"]).iter();
    let idle: Vec<String> = members
        .filter(|member| DYNAMIC.contains(&member.key.as_str()))
        .map(|member| member.key.clone())
        .collect();
    if !idle.is_empty() {
        found.push(
            at_value(&RULE, &WORDING, &path, scale)
                .with("scale", subject.text_of(scale.span))
                .with("idle", Argument::Words(idle)),
        );
    }
}
