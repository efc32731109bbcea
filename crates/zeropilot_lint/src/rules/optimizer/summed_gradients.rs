use zeropilot_config::problem::{Conflict, Problem};

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "O16",
    name: "summed-gradients",
    group: Group::Optimizer,
    severity: Severity::Error,
    summary: Text::new(
        "summed gradients with a feature that averages them",
        "梯度求和与对梯度取平均的功能冲突",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "gradient_allreduce_op": "sum", "zero_optimization": {"stage": 2}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{key}` \"sum\" does not work with {feature}",
        "`{key}` 设为 \"sum\" 时不能与 {feature} 一起使用",
    ),
    why: Text::new(
        "{feature} averages gradients over the ranks itself, and DeepSpeed raises an error at startup.",
        "{feature} 本身会对各 rank 的梯度取平均，DeepSpeed 启动时报错。",
    ),
    help: Text::new(
        "remove `{key}` to average gradients, or do not use {feature}",
        "删掉 `{key}` 改为取平均，或不用 {feature}",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, conflict: Conflict) -> Diagnostic {
    let feature = match conflict {
        Conflict::SumNeedsNoZenFlow => "ZenFlow",
        Conflict::SumNeedsNoDeepCompile => "DeepCompile",
        _ => "ZeRO stage 3",
    };
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span).with("feature", feature)
}
