use zeropilot_config::problem::Problem;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P09",
    name: "dynamic-loss-scale",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new("invalid settings for the dynamic loss scale", "动态 loss scale 的设置无效"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 0, "min_loss_scale": 0}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "loss_scale": 0, "loss_scale_window": 1000}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be greater than 0 with a dynamic loss scale, not {value}",
        "使用动态 loss scale 时 `{path}` 必须大于 0，不能是 {value}",
    ),
    why: Text::new(
        "If `loss_scale` is 0, the loss scale is dynamic. It cannot adapt with a window or minimum of 0, so DeepSpeed rejects the config.",
        "`loss_scale` 为 0 表示动态调整；窗口或下限为 0 时无法调整，DeepSpeed 会报错。",
    ),
    help: Text::new("set `{path}` to 1 or more", "把 `{path}` 设为不小于 1 的数"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let value = shortened(subject.text_of(problem.span));
    let title = Text::new("set `{path}` to 1", "把 `{path}` 设为 1");
    let fix = (problem.path.key() == "min_loss_scale" && !value.is_empty())
        .then(|| Fix::guess(title, vec![Edit::new(problem.span, "1")]));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("value", value)
        .fix(fix)
}
