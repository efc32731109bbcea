use zeropilot_config::problem::{KeyPath, Problem};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K04",
    name: "legacy-precision-key",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a legacy key in `fp16` or `bf16`", "`fp16` 或 `bf16` 里的旧键"),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#4386", "deepspeedai/DeepSpeed#2977"],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true, "opt_level": "O2"}}"#),
        Example::new(r#"{"train_batch_size": 8, "bf16": {"enabled": true, "loss_scale": 0}}"#),
    ],
    good: &[
        Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true}}"#),
        Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true, "opt_level": "O2"}}"#)
            .version("0.16.9"),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{section}` no longer accepts `{key}`", "`{section}` 已不再接受 `{key}`"),
    why: Text::new(
        "Before 0.17.1, DeepSpeed ignored the key. Now, DeepSpeed rejects unknown keys in `{section}`, even when the section is disabled.",
        "0.17.1 之前的 DeepSpeed 会忽略这个键；现在 `{section}` 不允许未知的键，即使没有启用也会报错。",
    ),
    help: Text::new(
        "remove `{key}`, which never had an effect here",
        "删掉 `{key}`，它在这里从未生效",
    ),
};

const LEGACY: [&str; 3] = ["fp16_opt_level", "opt_level", "fp16_backend"];
const LOSS_SCALE: [&str; 7] = [
    "loss_scale",
    "initial_scale_power",
    "loss_scale_window",
    "hysteresis",
    "consecutive_hysteresis",
    "min_loss_scale",
    "auto_cast",
];

/// Whether an unknown key is one of these.
pub(crate) fn applies(path: &KeyPath) -> bool {
    let [section, key] = path.0.as_slice() else { return false };
    match section.as_str() {
        "fp16" => LEGACY.contains(&key.as_str()),
        "bf16" | "bfloat16" => LEGACY.contains(&key.as_str()) || LOSS_SCALE.contains(&key.as_str()),
        _ => false,
    }
}

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let title = Text::new("remove the key", "删掉这个键");
    let fix = subject
        .member(&problem.path.0)
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix::safe(title, vec![edit]));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span).fix(fix)
}
