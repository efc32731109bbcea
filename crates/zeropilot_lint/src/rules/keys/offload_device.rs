use zeropilot_config::front_end;
use zeropilot_config::problem::{KeyPath, Problem};
use zeropilot_config::syntax::{Node, Span, Value};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K12",
    name: "offload-device",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("an unknown offload device", "未知的卸载位置"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "CPU"}}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": null}}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be \"none\", \"cpu\" or \"nvme\", not {value}",
        "`{path}` 只能是 \"none\"、\"cpu\" 或 \"nvme\"，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed accepts only \"none\", \"cpu\" and \"nvme\", in lower case.",
        "DeepSpeed 只接受 \"none\"、\"cpu\" 和 \"nvme\"，而且要小写。",
    ),
    help: Text::new(
        "set `{path}` to \"cpu\" or \"nvme\" to offload, or to \"none\" to keep the model states on the GPU",
        "要卸载就把 `{path}` 设为 \"cpu\" 或 \"nvme\"；要留在显存里就设为 \"none\"",
    ),
};

/// Words a refusal of the engine.
pub(crate) fn explain(problem: &Problem, subject: &Subject<'_>) -> Diagnostic {
    at(problem.path.clone(), problem.span, subject)
}

/// Words a refusal of a front end.
pub(crate) fn explain_front_end(problem: &front_end::Problem, subject: &Subject<'_>) -> Diagnostic {
    at(KeyPath::from(problem.path.as_str()), problem.span, subject)
}

fn at(path: KeyPath, span: Span, subject: &Subject<'_>) -> Diagnostic {
    let meant = match subject.node(path.0.iter().map(String::as_str)) {
        Some(Node { value: Value::Null, .. }) => Some("none"),
        Some(Node { value: Value::Str(text), .. }) => {
            match text.trim().to_ascii_lowercase().as_str() {
                "cpu" => Some("cpu"),
                "nvme" => Some("nvme"),
                "none" | "gpu" | "cuda" | "null" => Some("none"),
                _ => None,
            }
        }
        _ => None,
    };
    let title = Text::new("write \"{meant}\"", "改成 \"{meant}\"");
    let fix = meant.map(|meant| Fix::safe(title, vec![Edit::new(span, format!("\"{meant}\""))]));
    Diagnostic::new(&RULE, &WORDING, path, span)
        .with("value", shortened(subject.text_of(span)))
        .with("meant", meant.unwrap_or_default())
        .fix(fix)
}
