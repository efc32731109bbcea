//! Removing an entry that says the same is safe; otherwise the fix guesses that the last one counts.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::{PyValue, same};
use zeropilot_config::syntax::{DuplicateKey, Member, Node, Span, Value};

use crate::diagnostic::{Diagnostic, Fix, Safety};
use crate::edit::remove_member;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K11",
    name: "duplicate-key",
    group: Group::Keys,
    severity: Severity::Error,
    summary: Text::new("a key is written twice", "同一个键写了两次"),
    wordings: &[&REFUSED, &LAST_WINS],
    sources: &[],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "fp16": {"enabled": true}, "fp16": {"enabled": false}}"#,
        ),
        Example::new(
            r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 3, "stage": 2}}"#,
        )
        .read_by(FrontEnd::HfTrainer),
    ],
    good: &[Example::new(r#"{"train_batch_size": 8, "fp16": {"enabled": true}}"#)],
    is_no_op: false,
};

static REFUSED: Wording = Wording {
    message: Text::new(
        "`{key}` is written twice in the same object",
        "`{key}` 在同一个对象里写了两次",
    ),
    why: Text::new(
        "DeepSpeed rejects a file with duplicate keys.",
        "DeepSpeed 不接受含有重复键的文件。",
    ),
    help: Text::new("keep only one of the two `{key}` entries", "两处 `{key}` 只保留一处"),
};

static LAST_WINS: Wording = Wording {
    message: REFUSED.message,
    why: Text::new(
        "The HF Trainer and accelerate silently keep the last value; plain DeepSpeed rejects the file.",
        "HF Trainer 和 accelerate 只保留最后一个值且不提示；直接使用 DeepSpeed 则会报错。",
    ),
    help: REFUSED.help,
};

const FIRST: Text = Text::new("first written here", "第一次写在这里");

/// Words a finding of the reader. `written` is the tree with all duplicates in it.
pub(crate) fn explain(
    duplicate: &DuplicateKey<'_>,
    written: &Node,
    subject: &Subject<'_>,
) -> Diagnostic {
    let mut path = Vec::new();
    let object = holder(written, duplicate.later, &mut path);
    path.push(duplicate.key.to_owned());
    let (wording, severity) = match subject.front_end {
        FrontEnd::DeepSpeed => (&REFUSED, Severity::Error),
        _ => (&LAST_WINS, Severity::Warning),
    };
    Diagnostic::new(&RULE, wording, KeyPath(path), duplicate.later)
        .severity(severity)
        .related(duplicate.first, FIRST)
        .fix(object.and_then(|object| fix(duplicate, object, subject)))
}

/// Words a refusal of the engine.
pub(crate) fn explain_refusal(path: &KeyPath, span: Span, first: Span) -> Diagnostic {
    Diagnostic::new(&RULE, &REFUSED, path.clone(), span).related(first, FIRST)
}

/// The object that holds the key at `key_span`, and the path to it.
fn holder<'n>(node: &'n Node, key_span: Span, path: &mut Vec<String>) -> Option<&'n Node> {
    match &node.value {
        Value::Object(members) => {
            if members.iter().any(|member| member.key_span == key_span) {
                return Some(node);
            }
            let member = members.iter().find(|member| contains(&member.value, key_span))?;
            path.push(member.key.clone());
            holder(&member.value, key_span, path)
        }
        Value::Array(items) => {
            let (index, item) =
                items.iter().enumerate().find(|(_, item)| contains(item, key_span))?;
            path.push(index.to_string());
            holder(item, key_span, path)
        }
        _ => None,
    }
}

fn contains(node: &Node, span: Span) -> bool {
    node.span.start <= span.start && span.end <= node.span.end
}

fn fix(duplicate: &DuplicateKey<'_>, object: &Node, subject: &Subject<'_>) -> Option<Fix> {
    let Value::Object(members) = &object.value else { return None };
    let all: Vec<&Member> = members.iter().filter(|member| member.key == duplicate.key).collect();
    let [first, last] = all.as_slice() else { return None };
    let is_same = same(&PyValue::from(&first.value), &PyValue::from(&last.value));
    let edit = remove_member(subject, object, first.key_span)?;
    Some(Fix {
        title: Text::new(
            "remove the first entry, which Python discards",
            "删掉第一个（Python 会丢弃它）",
        ),
        safety: if is_same { Safety::Safe } else { Safety::Unsafe },
        edits: vec![edit],
    })
}
