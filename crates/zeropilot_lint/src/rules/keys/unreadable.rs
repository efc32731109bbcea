use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::SyntaxError;

use super::not_strict_json::fault;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K17",
    name: "unreadable",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new(
        "the file is neither JSON nor Hjson",
        "文件既不是合法的 JSON 也不是合法的 Hjson",
    ),
    wordings: &[&HJSON, &JSON],
    sources: &[],
    examples: &[
        Example::new("{\"train_batch_size\": 8, \"fp16\": {\"enabled\": true}"),
        Example::new("{\"train_batch_size\": 8").read_by(FrontEnd::HfTrainer),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true}}"#)],
    is_no_op: false,
};

static HJSON: Wording = Wording {
    message: Text::new("the file cannot be parsed: {fault}", "文件无法解析：{fault}"),
    why: Text::new(
        "DeepSpeed reads the file as Hjson, a lenient form of JSON, and fails here.",
        "DeepSpeed 按 Hjson（宽松的 JSON）读取文件，读到这里就报错。",
    ),
    help: Text::new(
        "fix the syntax error here or shortly before",
        "改正此处或前面不远处的语法错误",
    ),
};

static JSON: Wording = Wording {
    message: HJSON.message,
    why: Text::new(
        "The HF Trainer and accelerate read the file as JSON and fail here.",
        "HF Trainer 和 accelerate 按 JSON 读取文件，读到这里就报错。",
    ),
    help: HJSON.help,
};

/// Words the error.
pub(crate) fn explain(error: &SyntaxError, front_end: FrontEnd) -> Diagnostic {
    let wording = if front_end == FrontEnd::DeepSpeed { &HJSON } else { &JSON };
    Diagnostic::new(&RULE, wording, KeyPath::default(), error.span)
        .with("fault", fault(&error.kind))
}
