use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K22",
    name: "schedule-ends-early",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a schedule ends before it starts", "调度的结束步早于开始步"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "compression_training": {"sparse_pruning": {"shared_parameters": {"enabled": true, "method": "snip_momentum", "block_pattern": "4x1", "dense_ratio": 0.5, "schedule_offset": 10, "schedule_offset_end": 5}, "different_groups": {}}}}"#,
        )
        .version("0.18.9"),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the schedule of `{section}` ends before it starts",
        "`{section}` 的调度，结束步早于开始步",
    ),
    why: Text::new(
        "DeepSpeed checks that the schedule does not end before it starts and rejects the config.",
        "DeepSpeed 会检查结束步和开始步；结束步更早就报错。",
    ),
    help: Text::new(
        "set `schedule_offset_end` to `schedule_offset` or higher",
        "让 `schedule_offset_end` 不小于 `schedule_offset`",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
}
