use zeropilot_config::problem::Problem;
use zeropilot_config::syntax::{Node, Value};

use crate::argument::Argument;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "P08",
    name: "communication-type",
    group: Group::Precision,
    severity: Severity::Error,
    summary: Text::new("an unknown communication data type", "未知的通信数据类型"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new(r#"{"train_batch_size": 8, "communication_data_type": "bfloat16"}"#)],
    good: &[Example::new(r#"{"train_batch_size": 8, "communication_data_type": "bf16"}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{key}` must be one of {allowed}, not {value}",
        "`{key}` 只能是 {allowed} 之一，不能是 {value}",
    ),
    why: Text::new(
        "DeepSpeed accepts only the short names of communication data types.",
        "DeepSpeed 只接受通信数据类型的简写。",
    ),
    help: Text::new(
        "set `{key}` to the short name of a type, or remove the key to communicate in the training precision",
        "把 `{key}` 改为类型的简写，或删掉这个键，按训练精度通信",
    ),
};

/// Words the refusal.
pub(crate) fn explain(problem: &Problem, allowed: &[String], subject: &Subject<'_>) -> Diagnostic {
    let node = subject.node(problem.path.0.iter().map(String::as_str));
    let meant = match node {
        Some(Node { value: Value::Str(text), .. }) => short_name(text),
        _ => None,
    };
    let meant = meant.filter(|meant| allowed.iter().any(|word| word == meant));
    let title = Text::new("write \"{meant}\"", "改成 \"{meant}\"");
    let fix =
        meant.map(|meant| Fix::safe(title, vec![Edit::new(problem.span, format!("\"{meant}\""))]));
    Diagnostic::new(&RULE, &WORDING, problem.path.clone(), problem.span)
        .with("allowed", Argument::Words(allowed.to_vec()))
        .with("value", shortened(subject.text_of(problem.span)))
        .with("meant", meant.unwrap_or_default())
        .fix(fix)
}

fn short_name(text: &str) -> Option<&'static str> {
    match text.trim().trim_start_matches("torch.").to_ascii_lowercase().as_str() {
        "bfloat16" => Some("bf16"),
        "float16" | "half" => Some("fp16"),
        "float32" | "float" => Some("fp32"),
        _ => None,
    }
}
