use zeropilot_config::problem::Problem;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K06",
    name: "min-loss-scale-below-one",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a minimum loss scale below 1", "最小 loss scale 小于 1"),
    wordings: &[&WORDING],
    sources: &["ymcui/Chinese-LLaMA-Alpaca-2#141"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "min_loss_scale": 1e-10}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "fp16": {"enabled": true, "min_loss_scale": 1}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be an integer, not {value}",
        "`{path}` 必须是整数，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed stores the minimum loss scale as an integer and rejects the config. A scale below 1 would not help against underflow anyway.",
        "DeepSpeed 用整数保存最小 loss scale，因此报错；何况小于 1 的 scale 对下溢也没有帮助。",
    ),
    help: Text::new("set `{path}` to 1", "把 `{path}` 设为 1"),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let fix = (problem.span.start < problem.span.end)
        .then(|| Fix::safe(Text::new("write 1", "改成 1"), vec![Edit::new(problem.span, "1")]));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("value", shortened(subject.text_of(problem.span)))
        .fix(fix)
}
