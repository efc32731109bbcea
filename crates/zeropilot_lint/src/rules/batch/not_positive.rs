use zeropilot_config::problem::Problem;
use zeropilot_config::python::PyValue;
use zeropilot_config::syntax::Node;

use super::{ACCUMULATION, MICRO, TRAIN};
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B10",
    name: "batch-number-not-positive",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new("a batch key is not positive", "batch 相关的键不是正数"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 0}"#),
        Example::new(r#"{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": -1}"#),
    ],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{key}` must be greater than 0, not {value}",
        "`{key}` 必须大于 0，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed checks that the batch sizes and the gradient accumulation steps are greater than zero and raises an error at startup.",
        "DeepSpeed 启动时检查各个 batch 大小和梯度累积步数是否大于 0，不满足就报错。",
    ),
    help: Text::new(
        "set `{key}` to an integer of at least 1, or omit the key so that DeepSpeed derives it",
        "把 `{key}` 设为不小于 1 的整数，或者去掉这个键让 DeepSpeed 推算",
    ),
};

/// Words the refusal, at the number that is to blame.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let not_positive = |node: &&Node| {
        let number = PyValue::from(*node).number();
        number.is_none_or(|number| !number.is_positive())
    };
    let culprit = [TRAIN, MICRO, ACCUMULATION]
        .into_iter()
        .find_map(|key| Some((key, subject.root.get(key).filter(not_positive)?)));
    match culprit {
        Some((key, node)) => {
            Diagnostic::new(&RULE, &WORDING, key, node.span).with("value", subject.written(&[key]))
        }
        None => Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
            .with("value", subject.written(&problem.path.0)),
    }
}
