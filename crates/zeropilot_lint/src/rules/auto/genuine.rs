use zeropilot_config::front_end::{FrontEnd, Problem};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A12",
    name: "genuine-auto-refused",
    group: Group::Auto,
    severity: Severity::Error,
    summary: Text::new(
        "accelerate rejects an `\"auto\"` that DeepSpeed accepts",
        "accelerate 不接受 DeepSpeed 支持的 `\"auto\"`",
    ),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}, "data_types": {"keep_in_fp32_modules": "auto"}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
        Example::new(r#"{"train_batch_size": 8, "data_types": {"keep_in_fp32_modules": "auto"}}"#),
    ],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "accelerate rejects `\"auto\"` for `{path}`",
        "accelerate 不接受 `{path}` 的 `\"auto\"`",
    ),
    why: Text::new(
        "DeepSpeed itself accepts this `\"auto\"`, but accelerate treats it as a placeholder that it cannot fill in.",
        "DeepSpeed 本身支持这个 `\"auto\"`，但 accelerate 把它当成占位符，而且无法填写。",
    ),
    help: Text::new(
        "remove `{path}`: `\"auto\"` is its default",
        "删掉 `{path}`：`\"auto\"` 就是它的默认值",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    let parts: Vec<&str> = problem.path.split('.').collect();
    let fix = subject
        .member(&parts)
        .and_then(|(object, member)| remove_member(subject, object, member.key_span))
        .map(|edit| Fix::safe(Text::new("remove the key", "删掉这个键"), vec![edit]));
    Diagnostic::new(&RULE, &WORDING, problem.path.as_str(), problem.span).fix(fix)
}
