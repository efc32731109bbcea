use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "F12",
    name: "partial-offload-needs-stage-3",
    group: Group::Offload,
    severity: Severity::Error,
    summary: Text::new(
        "partial optimizer offload below stage 3",
        "stage 低于 3 时不能只卸载一部分优化器状态",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "an offload `ratio` below 1 needs ZeRO stage 3",
        "卸载的 `ratio` 小于 1 需要 ZeRO stage 3",
    ),
    why: Text::new(
        "Only stage 3 can keep part of the optimizer states on the GPU and offload the rest to the CPU. In other stages, DeepSpeed rejects the config.",
        "只有 stage 3 能把优化器状态一部分留在显存、一部分卸载到 CPU；其他 stage 下 DeepSpeed 会报错。",
    ),
    help: Text::new(
        "use stage 3, or remove `ratio` to offload all optimizer states",
        "改用 stage 3，或删掉 `ratio`，把优化器状态全部卸载",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
