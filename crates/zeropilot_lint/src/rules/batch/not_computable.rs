use zeropilot_config::problem::Problem;

use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B11",
    name: "batch-not-computable",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new("DeepSpeed cannot compute the batch sizes", "计算 batch 大小时会报错"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 0}"#),
        Example::new(r#"{"train_batch_size": 8, "gradient_accumulation_steps": 0}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 1}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "DeepSpeed cannot compute the batch sizes from `{key}` = {value}",
        "DeepSpeed 由 `{key}` = {value} 算不出 batch 大小",
    ),
    why: Text::new(
        "When DeepSpeed loads the config, it divides by the batch keys and fails, for example with a division by zero.",
        "DeepSpeed 加载配置时会用 batch 相关的键做除数，因而报错，例如除以 0。",
    ),
    help: Text::new("set `{key}` to an integer of at least 1", "把 `{key}` 设为不小于 1 的整数"),
};

/// Words the refusal, at the zero if there is one.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let zero = [super::MICRO, super::ACCUMULATION].into_iter().find_map(|key| {
        let node = subject.root.get(key)?;
        let number = zeropilot_config::python::PyValue::from(node).number()?;
        (!number.is_positive()).then_some((key, node.span))
    });
    match zero {
        Some((key, span)) => {
            Diagnostic::new(&RULE, &WORDING, key, span).with("value", subject.written(&[key]))
        }
        None => Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
            .with("value", subject.written(&problem.path.0)),
    }
}
