use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K21",
    name: "breakdown-needs-booleans",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "`wall_clock_breakdown` and `flops_profiler.enabled` must be booleans",
        "`wall_clock_breakdown` 和 `flops_profiler.enabled` 必须是布尔值",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": "false"}"#)],
    good: &[Example::new(r#"{"train_batch_size": 8, "wall_clock_breakdown": false}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("`{path}` must be true or false", "`{path}` 必须是 true 或 false"),
    why: Text::new(
        "DeepSpeed combines `wall_clock_breakdown` and `flops_profiler.enabled` with a bitwise OR and raises a `TypeError` for other types.",
        "DeepSpeed 会对 `wall_clock_breakdown` 和 `flops_profiler.enabled` 做按位或，值为其他类型时会抛 `TypeError`。",
    ),
    help: Text::new(
        "set `{path}` to true or false, without quotes",
        "把 `{path}` 设为 true 或 false，不加引号",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
