use zeropilot_config::front_end;
use zeropilot_config::problem::{KeyPath, Problem};
use zeropilot_config::syntax::{Node, Span, Value};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::Edit;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::{Subject, shortened};
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "B05",
    name: "quoted-batch-number",
    group: Group::Batch,
    severity: Severity::Error,
    summary: Text::new("a batch size is written as a string", "batch 大小写成了字符串"),
    wordings: &[&QUOTED, &UNQUOTED],
    sources: &["hiyouga/LlamaFactory#1116"],
    examples: &[
        Example::new(r#"{"train_batch_size": "8"}"#),
        Example::new("{\n  \"train_batch_size\": BATCH_SIZE\n}"),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8}"#)],
    is_no_op: false,
};

static QUOTED: Wording = Wording {
    message: Text::new(
        "`{key}` is a string, not a number: {value}",
        "`{key}` 是字符串而不是数字：{value}",
    ),
    why: Text::new(
        "DeepSpeed does not convert the batch keys: it compares the string with a number and raises a `TypeError`. In sections such as `zero_optimization`, it does convert quoted numbers.",
        "DeepSpeed 不转换 batch 相关的键，把字符串与数字比较时抛 `TypeError`。在 `zero_optimization` 这样的配置段里，带引号的数字会被自动转换。",
    ),
    help: Text::new("write `{key}` as a number, without quotes", "把 `{key}` 写成数字，不加引号"),
};

static UNQUOTED: Wording = Wording {
    message: QUOTED.message,
    why: Text::new(
        "DeepSpeed reads the file as Hjson, where an unquoted word starts a string that includes the rest of the line. DeepSpeed compares this string with a number and raises a `TypeError`.",
        "DeepSpeed 按 Hjson 读取文件，没加引号的词一直到行尾都算字符串；把它与数字比较时抛 `TypeError`。",
    ),
    help: Text::new(
        "write `{key}` as a number; if the value is a template placeholder, fill it in first",
        "把 `{key}` 写成数字；如果这是模板里的占位符，请先替换",
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
    let node = subject.node(path.0.iter().map(String::as_str));
    let number = node.and_then(|Node { value, .. }| match value {
        Value::Str(text) => text.trim().parse::<u64>().ok().filter(|&number| number > 0),
        _ => None,
    });
    let title = Text::new("write {number} without quotes", "去掉引号，写成 {number}");
    let fix = number.map(|number| Fix::safe(title, vec![Edit::new(span, number.to_string())]));
    let text = subject.text_of(span);
    let wording =
        if text.is_empty() || text.starts_with(['"', '\'']) { &QUOTED } else { &UNQUOTED };
    Diagnostic::new(&RULE, wording, path, span)
        .with("value", shortened(text))
        .with("number", number.map_or_else(String::new, |number| number.to_string()))
        .fix(fix)
}
