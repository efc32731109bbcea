use zeropilot_config::front_end::FrontEnd;

use super::scheduler_parameters::parameters;
use crate::diagnostic::Diagnostic;
use crate::reading::at_member;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O20",
    name: "rate-of-the-scheduler",
    group: Group::Optimizer,
    severity: Severity::Warning,
    summary: Text::new(
        "the scheduler overwrites the optimizer's learning rate",
        "调度器会覆盖优化器的学习率",
    ),
    wordings: &[&OTHER, &DEFAULT],
    sources: &["deepspeedai/DeepSpeed#5726"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 1e-3, "warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}, "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100, "warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_max_lr": 2e-5, "warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "optimizer": {"type": "AdamW", "params": {"lr": 2e-5}}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10, "warmup_type": "linear"}}}"#,
        ),
    ],
    is_no_op: false,
};

static OTHER: Wording = Wording {
    message: Text::new(
        "the scheduler warms up to {peak}, not to the optimizer's `lr` {rate}",
        "调度器会把学习率升到 {peak}，而不是优化器的 `lr` {rate}",
    ),
    why: Text::new(
        "`{name}` sets the learning rate of every step between `warmup_min_lr` and `warmup_max_lr` and overwrites the optimizer's `lr`.",
        "`{name}` 每一步都把学习率设在 `warmup_min_lr` 和 `warmup_max_lr` 之间，优化器的 `lr` 会被覆盖。",
    ),
    help: Text::new(
        "write the same number for `lr` and `warmup_max_lr`",
        "把 `lr` 和 `warmup_max_lr` 写成同一个值",
    ),
};

static DEFAULT: Wording = Wording {
    message: Text::new(
        "without `warmup_max_lr`, the scheduler warms up to 0.001, not to the optimizer's `lr` {rate}",
        "没有写 `warmup_max_lr`，调度器会把学习率升到 0.001，而不是优化器的 `lr` {rate}",
    ),
    why: Text::new(
        "`{name}` sets the learning rate of every step and overwrites the optimizer's `lr`. In DeepSpeed {version}, the default peak is 0.001.",
        "`{name}` 每一步都设置学习率，在 DeepSpeed {version} 里峰值的默认值是 0.001；优化器的 `lr` 会被覆盖。",
    ),
    help: Text::new(
        "add `\"warmup_max_lr\"` with the learning rate you want",
        "加上 `\"warmup_max_lr\"`，写成想要的学习率",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let Some((name @ ("WarmupLR" | "WarmupDecayLR"), parameters)) = parameters(subject) else {
        return;
    };
    let Some(rate) = subject.node(["optimizer", "params", "lr"]) else { return };
    let Some(written) = number(rate) else { return };
    let path = ["scheduler", "params", "warmup_max_lr"];
    let diagnostic = match subject.node(path) {
        Some(peak) => match number(peak) {
            // The HF Trainer compares both with its argument and refuses the one that differs.
            Some(value) if value != written && subject.front_end != FrontEnd::HfTrainer => {
                at_value(&RULE, &OTHER, &path, peak).with("peak", subject.text_of(peak.span))
            }
            _ => return,
        },
        None => {
            let default = parameters.optional.get("warmup_max_lr").and_then(|value| value.as_f64());
            let Some((_, section)) = subject.member(&["scheduler"]) else { return };
            let is_object = section.value.get("params").is_some();
            if !is_object || default.is_none_or(|default| default == written) {
                return;
            }
            at_member(&RULE, &DEFAULT, &["scheduler"], section)
        }
    };
    found.push(
        diagnostic
            .with("name", name)
            .with("version", subject.version.name())
            .with("rate", subject.text_of(rate.span))
            .related(rate.span, Text::new("this value has no effect", "这个值不生效")),
    );
}
