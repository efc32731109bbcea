use zeropilot_config::problem::KeyPath;
use zeropilot_config::python::is_true;
use zeropilot_config::schema::{Deprecation, Field};
use zeropilot_config::syntax::{Member, Node, Value};

use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::{Edit, remove_member, rename};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K14",
    name: "deprecated-key",
    group: Group::Keys,
    severity: Severity::Warning,
    summary: Text::new("a deprecated key", "已弃用的键"),
    wordings: &[&MOVED, &NO_EFFECT],
    sources: &["deepspeedai/DeepSpeed#912", "deepspeedai/DeepSpeedExamples#172"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "stage3_gather_fp16_weights_on_model_save": true}}"#,
        ),
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "cpu_offload_use_pin_memory": true}}"#,
        ),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}"#,
    )],
    is_no_op: false,
};

static MOVED: Wording = Wording {
    message: Text::new("`{key}` is deprecated; use `{new}`", "`{key}` 已弃用，请改用 `{new}`"),
    why: Text::new(
        "DeepSpeed {version} still converts the key and logs a warning. Once a later version removes the key, DeepSpeed rejects it as unknown.",
        "DeepSpeed {version} 仍会转换这个键，并在日志里警告；以后的版本移除之后，DeepSpeed 会把它当作未知的键而报错。",
    ),
    help: Text::new("write `{replacement}`", "改写为 `{replacement}`"),
};

static NO_EFFECT: Wording = Wording {
    message: Text::new(
        "`{key}` is deprecated and has no effect; use {new}",
        "`{key}` 已弃用且不生效，请改用 {new}",
    ),
    why: Text::new(
        "DeepSpeed {version} logs a warning when it reads the key and does nothing else with it.",
        "DeepSpeed {version} 读到这个键只会在日志里警告，不做其他处理。",
    ),
    help: Text::new(
        "set the option inside {new}, where it takes effect, and remove `{key}`",
        "在 {new} 里设置对应的选项（写在那里才生效），并删掉 `{key}`",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    let schema = subject.schema();
    for section in subject.members() {
        let (Value::Object(members), Some(model)) =
            (&section.value.value, schema.section_model(&section.key))
        else {
            continue;
        };
        for member in members {
            let Some(field) = model.field_for_key(&member.key) else { continue };
            let Some(deprecated) = &field.deprecated else { continue };
            let target = model.field(&deprecated.new);
            let is_beside = target.is_some_and(|target| {
                section.value.get(target.key()).is_some()
                    || section.value.get(&target.name).is_some()
            });
            // With its replacement beside it the engine refuses, and that is another rule's finding.
            if !(deprecated.moves && is_beside) {
                let path = KeyPath(vec![section.key.clone(), member.key.clone()]);
                found.push(word(subject, &section.value, path, member, deprecated, target));
            }
        }
    }
}

fn word(
    subject: &Subject<'_>,
    object: &Node,
    path: KeyPath,
    member: &Member,
    deprecated: &Deprecation,
    target: Option<&Field>,
) -> Diagnostic {
    let version = subject.version.name();
    let Some(target) = target.filter(|_| deprecated.moves) else {
        let new: Vec<String> = deprecated.new.split(" or ").map(|key| format!("`{key}`")).collect();
        let fix = remove_member(subject, object, member.key_span)
            .map(|edit| Fix::safe(Text::new("remove `{key}`", "删掉 `{key}`"), vec![edit]));
        return Diagnostic::new(&RULE, &NO_EFFECT, path, member.key_span)
            .with("version", version)
            .with("new", new.join(" / "))
            .fix(fix);
    };
    let value = replacement(subject, member, deprecated);
    let fix = value.as_ref().map(|value| {
        let edits = vec![
            rename(member.key_span, target.key()),
            Edit::new(member.value.span, value.clone()),
        ];
        Fix::safe(Text::new("write `{replacement}`", "改写为 `{replacement}`"), edits)
    });
    let value = value.unwrap_or_else(|| "…".to_owned());
    Diagnostic::new(&RULE, &MOVED, path, member.key_span)
        .with("version", version)
        .with("new", target.key())
        .with("replacement", format!("\"{}\": {value}", target.key()))
        .fix(fix)
}

/// What the replacement's value has to be: the same, or the section that a switch stood for.
fn replacement(subject: &Subject<'_>, member: &Member, deprecated: &Deprecation) -> Option<String> {
    if !deprecated.converts {
        return Some(subject.text_of(member.value.span).to_owned());
    }
    match &member.value.value {
        Value::Bool(_) => {
            let device = if is_true(&member.value.value) { "cpu" } else { "none" };
            Some(format!("{{\"device\": \"{device}\"}}"))
        }
        _ => None,
    }
}
