use zeropilot_config::front_end::{FrontEnd, Problem};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A05",
    name: "auto-accelerate-leaves",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "accelerate without the HF Trainer does not fill in `betas` and `eps`",
        "单独使用 accelerate 时不会填 `betas` 和 `eps`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}}"#,
        )
        .read_by(FrontEnd::Accelerate),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 2}, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": [0.9, 0.95]}}}"#,
        )
        .read_by(FrontEnd::Accelerate),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "accelerate does not fill in `\"auto\"` for `{path}`",
        "accelerate 不会填 `{path}` 的 `\"auto\"`",
    ),
    why: Text::new(
        "The HF Trainer fills in this key. Without the Trainer, accelerate fills in only the optimizer's `lr` and `weight_decay`, and `prepare` raises a `ValueError`.",
        "HF Trainer 会填这个键，但单独使用 accelerate 时只填优化器的 `lr` 和 `weight_decay`；`prepare` 会抛 `ValueError`。",
    ),
    help: Text::new(
        "write the numbers, for example `[0.9, 0.999]` for `betas` and `1e-8` for `eps`",
        "写成具体数值，例如 `betas` 写 `[0.9, 0.999]`，`eps` 写 `1e-8`",
    ),
};

/// Whether the key is an optimizer parameter that only the Trainer fills.
pub(crate) fn applies(path: &[&str]) -> bool {
    matches!(path, ["optimizer", "params", "betas" | "eps"])
}

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span)
}
