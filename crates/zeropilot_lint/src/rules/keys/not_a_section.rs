//! `{"enabled": true}` is what `true` must have meant; removing `null` gives the default.

use zeropilot_config::front_end;
use zeropilot_config::problem::{KeyPath, Problem};
use zeropilot_config::python::{Kind, kind_of};
use zeropilot_config::syntax::{Span, Value};

use crate::argument::Argument;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::{Edit, remove_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K09",
    name: "not-a-section",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a value where a section is expected", "该写配置段的地方写了别的值"),
    wordings: &[&WORDING],
    sources: &[],
    examples: &[
        Example::new(r#"{"train_batch_size": 8, "bf16": true}"#),
        Example::new(r#"{"train_batch_size": 8, "fp16": null}"#),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "bf16": {"enabled": true}}"#)],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` must be an object `{{…}}`, not {found}",
        "`{path}` 必须是对象 `{{…}}`，不能是{found}",
    ),
    why: Text::new(
        "DeepSpeed reads this key as a section with keys of its own. The run fails with a Python `TypeError` that does not name the key.",
        "DeepSpeed 把这个键当作配置段读取，运行时会抛 `TypeError`，而且错误信息里看不出是哪个键。",
    ),
    help: Text::new(
        "write an object for `{path}`, or remove the key to get the defaults",
        "把 `{path}` 写成对象，或删掉这个键使用默认值",
    ),
};

/// Words a refusal of the engine.
pub(crate) fn explain(problem: &Problem, found: Kind, subject: &Subject<'_>) -> Diagnostic {
    at(problem.path.clone(), problem.span, found, subject)
}

/// Words a refusal of a front end.
pub(crate) fn explain_front_end(problem: &front_end::Problem, subject: &Subject<'_>) -> Diagnostic {
    let path = if problem.path.is_empty() {
        KeyPath::default()
    } else {
        KeyPath::from(problem.path.as_str())
    };
    let kind = subject
        .node(path.0.iter().map(String::as_str))
        .map_or(Kind::Null, |node| kind_of(&node.value));
    if path.0.is_empty() {
        return super::root_not_an_object::explain(kind, problem.span);
    }
    at(path, problem.span, kind, subject)
}

fn at(path: KeyPath, span: Span, found: Kind, subject: &Subject<'_>) -> Diagnostic {
    let fix = fix(&path, subject);
    Diagnostic::new(&RULE, &WORDING, path, span).with("found", Argument::Kind(found)).fix(fix)
}

fn fix(path: &KeyPath, subject: &Subject<'_>) -> Option<Fix> {
    let (object, member) = subject.member(&path.0)?;
    match member.value.value {
        Value::Bool(on) if matches!(path.key(), "fp16" | "bf16" | "bfloat16") => {
            let title = Text::new("write `{{\"enabled\": …}}`", "写成 `{{\"enabled\": …}}`");
            Some(Fix::safe(
                title,
                vec![Edit::new(member.value.span, format!("{{\"enabled\": {on}}}"))],
            ))
        }
        Value::Null => {
            let edit = remove_member(subject, object, member.key_span)?;
            Some(Fix::safe(Text::new("remove the key", "删掉这个键"), vec![edit]))
        }
        _ => None,
    }
}
