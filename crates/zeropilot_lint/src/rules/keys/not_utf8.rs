use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::Span;

use crate::diagnostic::Diagnostic;
use crate::rule::{Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K20",
    name: "not-utf8",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("the file is not UTF-8 text", "文件不是 UTF-8 编码"),
    wordings: &[&WORDING],
    sources: &[],
    // An example would have to be bytes.
    examples: &[],
    good: &[],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new("the file is not UTF-8 text from here on", "文件从这里开始不是 UTF-8 文本"),
    why: Text::new(
        "DeepSpeed and the frameworks decode the file as UTF-8 and fail before they read any key.",
        "DeepSpeed 和训练框架按 UTF-8 解码，还没读到任何键就会报错。",
    ),
    help: Text::new(
        "save the file as UTF-8, or check that it is a text file",
        "把文件存成 UTF-8，或确认它是不是文本文件",
    ),
};

/// Words the error.
pub(crate) fn explain(span: Span) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, KeyPath::default(), span)
}
