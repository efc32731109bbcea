use zeropilot_config::python::Kind;
use zeropilot_config::syntax::Span;

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K18",
    name: "root-not-an-object",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("the file does not contain an object", "文件内容不是一个对象"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[Example::new("[1, 2]")],
    good: &[Example::new(r#"{"train_batch_size": 8}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "the file must contain an object `{{…}}`, not {found}",
        "文件内容必须是一个对象 `{{…}}`，不能是{found}",
    ),
    why: Text::new(
        "A DeepSpeed config is an object with keys. DeepSpeed cannot read settings from any other content.",
        "DeepSpeed 配置是一个带键的对象，从别的内容里读不出任何设置。",
    ),
    help: Text::new("check that this is the right file", "确认指定的文件是否正确"),
};

/// Words the refusal.
pub(crate) fn explain(found: Kind, span: Span) -> Diagnostic {
    Diagnostic::new(&RULE, &WORDING, zeropilot_config::problem::KeyPath::default(), span)
        .with("found", Argument::Kind(found))
}
