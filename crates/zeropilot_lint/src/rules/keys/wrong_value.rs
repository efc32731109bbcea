use zeropilot_config::front_end;
use zeropilot_config::problem::{Expected, KeyPath, Problem};
use zeropilot_config::python::{Kind, kind_of};

use crate::argument::Argument;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K15",
    name: "wrong-value",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a value of the wrong type", "值的类型不对"),
    wordings: &[&WORDING, &UNQUOTED],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "zero_optimization": {"stage": 4}}"#),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": "sometimes"}}"#,
        ),
        Example::new(
            "{\n  \"train_batch_size\": 8,\n  \"fp16\": {\n    \"enabled\": True,\n    \"loss_scale\": 0\n  }\n}",
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "overlap_comm": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be {expected}, not {value}",
        "`{path}` 应为{expected}，而不是 {value}",
    ),
    why: Text::new(
        "DeepSpeed cannot convert {found} here and rejects the config.",
        "DeepSpeed 在这里无法转换{found}，因此报错。",
    ),
    help: Text::new(
        "set `{path}` to {expected}, or remove the key to get its default",
        "把 `{path}` 改成{expected}，或删掉这个键使用默认值",
    ),
};

static UNQUOTED: Wording = Wording {
    message: Text::new(
        "`{path}` must be {expected}, not the string \"{value}\"",
        "`{path}` 应为{expected}，而不是字符串 \"{value}\"",
    ),
    why: Text::new(
        "DeepSpeed reads the file as Hjson. An unquoted word that is not a JSON value then starts a string that includes the rest of the line, even a comma.",
        "DeepSpeed 按 Hjson 读取文件：没加引号、又不是 JSON 值的内容一直到行尾都算字符串，连逗号也算在内。",
    ),
    help: Text::new(
        "write {expected} for `{path}` in JSON syntax: `true`, not `True`; if the value is a template placeholder, fill it in first",
        "把 `{path}` 按 JSON 的写法写成{expected}：是 `true` 而不是 `True`；如果这是模板里的占位符，请先替换",
    ),
};

/// Words a refusal of the engine.
pub(crate) fn explain(
    problem: &Problem,
    expected: &Expected,
    found: Kind,
    subject: &Subject<'_>,
) -> Diagnostic {
    let text = subject.text_of(problem.span);
    let is_unquoted = found == Kind::Str && !text.is_empty() && !text.starts_with(['"', '\'']);
    let wording = if is_unquoted { &UNQUOTED } else { &WORDING };
    Diagnostic::new(&RULE, wording, problem.path.clone(), problem.span)
        .with("expected", Argument::Expected(expected.clone()))
        .with("found", Argument::Kind(found))
        .with("value", value(text, found))
}

/// Words a refusal of a front end, which needs a number.
pub(crate) fn explain_front_end(problem: &front_end::Problem, subject: &Subject<'_>) -> Diagnostic {
    let path = KeyPath::from(problem.path.as_str());
    let found = subject
        .node(path.0.iter().map(String::as_str))
        .map_or(Kind::Null, |node| kind_of(&node.value));
    Diagnostic::new(&RULE, &WORDING, path, problem.span)
        .with("expected", Text::new("a number greater than 0", "大于 0 的数"))
        .with("found", Argument::Kind(found))
        .with("value", value(subject.text_of(problem.span), found))
}

/// The value as written; a long list or object by its kind.
fn value(text: &str, found: Kind) -> Argument {
    match found {
        Kind::List | Kind::Dict => Argument::Kind(found),
        _ if text.is_empty() => Argument::Kind(found),
        _ => Argument::Plain(shortened(text)),
    }
}
