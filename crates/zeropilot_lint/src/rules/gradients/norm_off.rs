use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "G09",
    name: "gradient-norm-off",
    group: Group::Gradients,
    severity: Severity::Error,
    summary: Text::new(
        "`compute_grad_norm` is off outside stages 1 and 2",
        "stage 1/2 以外关闭了 `compute_grad_norm`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "compute_grad_norm": false}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_clipping": 0.0, "zero_optimization": {"stage": 2, "compute_grad_norm": false}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`compute_grad_norm` can only be false in ZeRO stages 1 and 2",
        "`compute_grad_norm` 只有在 ZeRO stage 1 和 2 下才能设为 false",
    ),
    why: Text::new(
        "The other stages need the gradient norm, so DeepSpeed rejects the config.",
        "其他 stage 需要梯度范数，设为 false 时 DeepSpeed 会报错。",
    ),
    help: Text::new(
        "remove `compute_grad_norm`, or use stage 1 or 2",
        "删掉 `compute_grad_norm`，或改用 stage 1 或 2",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
