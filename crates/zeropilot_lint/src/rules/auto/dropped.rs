use zeropilot_config::python::is_auto;
use zeropilot_config::schema::{Field, FieldType, Model, Schema};
use zeropilot_config::syntax::{Member, Value};

use super::misspelt;
use crate::diagnostic::Diagnostic;
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "A02",
    name: "auto-dropped",
    group: Group::Auto,
    severity: Severity::Warning,
    summary: Text::new(
        "`\"auto\"` inside a section silently becomes the default",
        "配置段里的 `\"auto\"` 会变成默认值，且没有提示",
    ),
    wordings: &[&WORDING],
    sources: &["deepspeedai/DeepSpeed#1270", "huggingface/trl#2154"],
    examples: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": "auto"}, "bf16": {"enabled": "auto"}}"#,
    )],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 2}, "bf16": {"enabled": true}}"#,
    )],
    is_no_op: false,
};

static WORDING: Wording = Wording {
    message: Text::new(
        "`{path}` is `\"auto\"`: DeepSpeed drops the key and uses its default, {default}",
        "`{path}` 写的是 `\"auto\"`：DeepSpeed 会丢弃这个键，用默认值 {default}",
    ),
    why: Text::new(
        "The HF Trainer and accelerate fill in `\"auto\"`. Plain DeepSpeed silently removes keys with this value from this section.",
        "`\"auto\"` 由 HF Trainer 或 accelerate 填写。直接使用 DeepSpeed 时，这个配置段里值为 `\"auto\"` 的键会被删掉，没有任何提示。",
    ),
    help: Text::new(
        "set `{path}` to a value; or, if the HF Trainer or accelerate reads this file, name that framework with `--front-end`",
        "把 `{path}` 写成想要的值；如果这个文件其实由 HF Trainer 或 accelerate 读取，请用 `--front-end` 指明训练框架",
    ),
};

pub(crate) fn check(subject: &Subject<'_>, found: &mut Vec<Diagnostic>) {
    if !subject.may_leave_auto() {
        return;
    }
    let schema = subject.schema();
    for member in subject.members() {
        if let (Value::Object(members), Some(model)) =
            (&member.value.value, schema.section_model(&member.key))
        {
            section(schema, model, members, &mut vec![member.key.clone()], found);
        }
    }
}

fn section(
    schema: &Schema,
    model: &Model,
    members: &[Member],
    path: &mut Vec<String>,
    found: &mut Vec<Diagnostic>,
) {
    for member in members {
        let field = model.field_for_key(&member.key);
        path.push(member.key.clone());
        if model.drops_auto && is_auto(&member.value.value) {
            found.push(match field {
                Some(field) => dropped(field, path, member),
                None => misspelt::found(model, path, member),
            });
        } else if let (Value::Object(members), Some(nested)) =
            (&member.value.value, field.and_then(|field| nested_model(schema, field)))
        {
            section(schema, nested, members, path, found);
        }
        path.pop();
    }
}

fn dropped(field: &Field, path: &[String], member: &Member) -> Diagnostic {
    let path = zeropilot_config::problem::KeyPath(path.to_vec());
    Diagnostic::new(&RULE, &WORDING, path, member.value.span)
        .with("default", format!("`{}`", field.default))
}

fn nested_model<'s>(schema: &'s Schema, field: &'s Field) -> Option<&'s Model> {
    let kind = match &field.kind {
        FieldType::Optional(inner) => inner.as_ref(),
        kind => kind,
    };
    match kind {
        FieldType::Model(name) => schema.models.get(name),
        _ => None,
    }
}
