//! I02: no ZeRO section for a front end that needs one.
//!
//! # What it does
//! Finds configs without `zero_optimization` under the HF Trainer or accelerate.
//!
//! # Why is this bad?
//! accelerate's plugin, which the Trainer builds as well, raises `Please specify the ZeRO
//! optimization config in the DeepSpeed config.`

use zeropilot_config::front_end::{FrontEnd, Problem};
use zeropilot_config::syntax::Span;

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::insert_members;
use crate::language::Text;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;

pub(crate) static RULE: Rule = Rule {
    code: "I02",
    name: "no-zero-section",
    group: Group::Integrations,
    severity: Severity::Error,
    summary: Text::new(
        "no `zero_optimization` section for a front end that needs one",
        "训练框架要求有 `zero_optimization`，但没有写",
    ),
    wordings: &[&WORDING],
    sources: &["CarperAI/trlx#316"],
    examples: &[
        Example::new(r#"{"train_micro_batch_size_per_gpu": "auto"}"#).read_by(FrontEnd::HfTrainer)
    ],
    good: &[Example::new(
        r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
    )
    .read_by(FrontEnd::HfTrainer)],
    check: None,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "there is no `zero_optimization` section",
        "没有 `zero_optimization` 这一段",
    ),
    why: Text::new(
        "plain DeepSpeed runs without ZeRO, but the HF Trainer and accelerate refuse a config that does not name the section.",
        "直接用 DeepSpeed 可以不开 ZeRO，但 HF Trainer 和 accelerate 要求必须写这一段。",
    ),
    help: Text::new(
        "add the section; `{{\"stage\": 0}}` is ZeRO switched off",
        "加上这一段；`{{\"stage\": 0}}` 表示不用 ZeRO",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let title = Text::new("add the section with ZeRO switched off", "加上这一段，但不启用 ZeRO");
    let fix = insert_members(subject, subject.root, &[("zero_optimization", "{\"stage\": 0}")])
        .map(|edit| Fix::guess(title, vec![edit]));
    let start = problem.span.start;
    let span = Span::new(start, problem.span.end.min(start + 1));
    Diagnostic::new(&RULE, &WORDING, "zero_optimization", span).fix(fix)
}
