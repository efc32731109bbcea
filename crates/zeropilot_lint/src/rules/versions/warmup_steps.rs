use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Value;

use crate::diagnostic::Diagnostic;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::reading::at_value;
use crate::reading::number;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "V06",
    name: "warmup-not-a-whole-number",
    group: Group::Versions,
    severity: Severity::Error,
    summary: Text::new(
        "`warmup_num_steps` is not a positive integer",
        "`warmup_num_steps` 不是正整数",
    ),
    wordings: &[&WORDING],
    sources: &["hiyouga/LlamaFactory#1485"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "zero_optimization": {"stage": 2}, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1e3, "warmup_type": "linear"}}}"#,
        )
        .read_by(FrontEnd::Accelerate),
    ],
    good: &[
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1, "warmup_type": "linear"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0, "warmup_type": "linear"}}}"#,
        )
        .version("0.18.9"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`warmup_num_steps` is {value}, but DeepSpeed {version} accepts only positive integers",
        "`warmup_num_steps` 是 {value}，而 DeepSpeed {version} 只接受正整数",
    ),
    why: Text::new(
        "The scheduler rejects the value in `deepspeed.initialize`. Earlier versions accepted any value and used at least 2.",
        "`deepspeed.initialize` 创建调度器时会报错。旧版本接受任何值，并至少按 2 处理。",
    ),
    help: Text::new(
        "set `warmup_num_steps` to {suggested}, or to 1 for no warmup",
        "把 `warmup_num_steps` 设为 {suggested}；不需要 warmup 就设为 1",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let is_warmup = subject
        .text_at(["scheduler", "type"])
        .is_some_and(|name| matches!(name, "WarmupLR" | "WarmupDecayLR" | "WarmupCosineLR"));
    let path = ["scheduler", "params", "warmup_num_steps"];
    let Some(node) =
        subject.node(path).filter(|_| is_warmup && subject.version >= EngineVersion::V0_19)
    else {
        return;
    };
    let Some(steps) = number(node) else { return };
    // The HF Trainer compares a whole number with its own argument first, and words that itself.
    let is_compared = subject.front_end == FrontEnd::HfTrainer;
    let is_refused = match node.value {
        Value::Int(_) => steps <= 0.0 && !is_compared,
        _ => true,
    };
    if is_refused {
        let whole = if steps.fract() == 0.0 && steps >= 1.0 { steps } else { 1.0 };
        let title = Text::new(
            "set `warmup_num_steps` to {suggested}",
            "把 `warmup_num_steps` 设为 {suggested}",
        );
        let fix = Fix::guess(title, vec![Edit::new(node.span, format!("{whole:.0}"))]);
        found.push(
            at_value(&RULE, &WORDING, &path, node)
                .with("value", subject.text_of(node.span))
                .with("version", subject.version.name())
                .with("suggested", format!("{whole:.0}"))
                .fix(Some(fix)),
        );
    }
}
