use zeropilot_config::problem::KeyPath;
use zeropilot_config::schema::{FieldType, Model};
use zeropilot_config::syntax::{Member, Value};

use super::HAND_READ_SECTIONS;
use crate::diagnostic::{Diagnostic, Fix};
use crate::edit::{Edit, can_move, in_order, insert_members, remove_member};
use crate::rule::{Example, Group, Rule, Severity, Wording};
use crate::subject::Subject;
use zeropilot_text::Text;

pub(crate) static RULE: Rule = Rule {
    code: "K02",
    name: "wrong-level",
    group: Group::Keys,
    severity: Severity::Warning,
    summary: Text::new("a key is at the wrong level", "键写错了层级"),
    wordings: &[&WORDING],
    sources: &["ymcui/Chinese-LLaMA-Alpaca-2#141"],
    examples: &[
        Example::new(
            r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3}, "memory_efficient_linear": false}"#,
        ),
        Example::new(r#"{"train_batch_size": 8, "offload_optimizer": {"device": "cpu"}}"#),
    ],
    good: &[Example::new(
        r#"{"train_batch_size": 8, "zero_optimization": {"stage": 3, "memory_efficient_linear": false}}"#,
    )],
    is_no_op: true,
};

static WORDING: Wording = Wording {
    message: Text::new("`{key}` must be inside `{home}`", "`{key}` 应该写在 `{home}` 里"),
    why: Text::new(
        "DeepSpeed reads this key only in `{home}`. Here, DeepSpeed silently ignores it: the setting has no effect.",
        "DeepSpeed 只在 `{home}` 里读取这个键。写在这里不生效，也没有提示。",
    ),
    help: Text::new(
        "move `{key}` into `{home}`, or remove it if you do not need it",
        "把 `{key}` 移到 `{home}` 里；不需要就删掉",
    ),
};

/// The section that reads the key, if exactly one does; `zero_optimization` comes first.
pub(crate) fn home(subject: &Subject<'_>, key: &str) -> Option<String> {
    let schema = subject.schema();
    let has =
        |model: &Model| model.fields.iter().any(|field| field.key() == key || field.name == key);
    let zero = schema.section_model("zero_optimization")?;
    if has(zero) {
        return Some("zero_optimization".to_owned());
    }
    let mut homes: Vec<String> = Vec::new();
    for field in &zero.fields {
        let kind = match &field.kind {
            FieldType::Optional(inner) => inner.as_ref(),
            kind => kind,
        };
        if let FieldType::Model(name) = kind
            && schema.models.get(name).is_some_and(has)
        {
            homes.push(format!("zero_optimization.{}", field.key()));
        }
    }
    let models = schema.sections.iter().filter(|(section, _)| *section != "bfloat16");
    homes.extend(
        models
            .filter(|(section, name)| {
                *section != "zero_optimization" && schema.models.get(*name).is_some_and(has)
            })
            .map(|(section, _)| section.clone()),
    );
    homes.extend(
        HAND_READ_SECTIONS
            .into_iter()
            .filter(|section| schema.raw_members(section).any(|member| member == key))
            .map(str::to_owned),
    );
    // A key of a section that the file does not have belongs to something else.
    homes.retain(|home| {
        let section = home.split('.').next().unwrap_or_default();
        section == "zero_optimization" || subject.root.get(section).is_some()
    });
    match homes.as_slice() {
        [home] => Some(home.clone()),
        _ => None,
    }
}

/// Words the finding.
pub(crate) fn found(
    subject: &Subject<'_>,
    path: KeyPath,
    member: &Member,
    home: String,
) -> Diagnostic {
    let title = Text::new("move the key into `{home}`", "移到 `{home}` 里");
    let fix = movement(subject, member, &home).map(|edits| Fix::guess(title, edits));
    Diagnostic::new(&RULE, &WORDING, path, member.key_span).with("home", home).fix(fix)
}

fn movement(subject: &Subject<'_>, member: &Member, home: &str) -> Option<Vec<Edit>> {
    let target = subject.node(home.split('.'))?;
    let Value::Object(present) = &target.value else { return None };
    if present.iter().any(|other| other.key == member.key) || !can_move(subject, &member.value) {
        return None;
    }
    let value = subject.text_of(member.value.span);
    let insertion = insert_members(subject, target, &[(&member.key, value)])?;
    Some(in_order(insertion, remove_member(subject, subject.root, member.key_span)?))
}
