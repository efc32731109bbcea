//! Fields of answers, one a row.

use std::fmt::Write as _;

use serde_json::Value;
use zeropilot_text::{Language, Text};
use zeropilot_view::answers::{Role, Shapes};

use super::kind::{Definition, Kind};

/// Every answer with a table of its fields.
pub(crate) fn tables(shapes: &Shapes, language: Language) -> String {
    let mut text = String::new();
    for (name, role) in &shapes.roots {
        let (title, start) = match role {
            Role::Answer(verb) => (format!("{verb} --json"), ""),
            Role::Python(verb) => (format!("zeropilot.{verb} (Python)"), ""),
            Role::List(verb) => (format!("{verb} --json"), "[]"),
            Role::Explanation(kind) => (format!("explain --json: `\"kind\": \"{kind}\"`"), ""),
            Role::Page => continue,
        };
        let columns = Text::new("| field | type |", "| 字段 | 类型 |").get(language);
        let _ = write!(text, "\n## {title}\n\n{columns}\n| --- | --- |\n");
        rows(&mut text, start, &Kind::Named(name.clone()), true, (shapes, language));
    }
    text
}

fn rows(text: &mut String, path: &str, kind: &Kind, is_required: bool, of: (&Shapes, Language)) {
    let (shapes, language) = of;
    let words = |english, chinese| Text::new(english, chinese).get(language);
    let inner = match kind {
        Kind::Nullable(inner) => inner,
        other => other,
    };
    let definition = match inner {
        Kind::Named(name) => Some(Definition::of(&shapes.types[name])),
        _ => None,
    };
    let mut notes = Vec::new();
    if matches!(kind, Kind::Nullable(_)) {
        notes.push(words("or null", "或 null"));
    }
    if !is_required {
        notes.push(words("may be missing", "可能没有"));
    }
    let mut row = |kind: String| {
        let notes: String = notes.iter().map(|note| format!(", {note}")).collect();
        let _ = writeln!(text, "| `{path}` | {kind}{notes} |");
    };
    match (inner, definition) {
        (_, Some(Definition::Object(fields))) => {
            if !notes.is_empty() {
                row(words("object", "对象").to_owned());
            }
            let dot = if path.is_empty() { "" } else { "." };
            for field in fields {
                rows(
                    text,
                    &format!("{path}{dot}{}", field.name),
                    &field.kind,
                    field.is_required,
                    of,
                );
            }
        }
        (_, Some(Definition::Alias(alias))) => row(leaf(&alias, language)),
        (Kind::List(item), None) if item.name().is_some() => {
            if !notes.is_empty() {
                row(words("array", "数组").to_owned());
            }
            rows(text, &format!("{path}[]"), item, true, of);
        }
        (other, None) => row(leaf(other, language)),
    }
}

fn leaf(kind: &Kind, language: Language) -> String {
    let words = |english, chinese| Text::new(english, chinese).get(language).to_owned();
    match kind {
        Kind::Any => words("any", "任意"),
        Kind::Boolean => words("boolean", "布尔"),
        Kind::Integer => words("integer", "整数"),
        Kind::Number => words("number", "数值"),
        Kind::Text => words("string", "字符串"),
        Kind::OneOf(all) => {
            let all: Vec<String> =
                all.iter().map(|one| format!("`{}`", Value::from(one.as_str()))).collect();
            all.join(words(", ", "、").as_str())
        }
        Kind::Named(name) => name.clone(),
        Kind::List(item) => format!("{} {}", words("array of", "数组："), leaf(item, language)),
        Kind::Table(item) if **item == Kind::Any => words("object", "对象"),
        Kind::Table(item) => {
            format!("{} {}", words("object of", "对象，值为"), leaf(item, language))
        }
        Kind::Nullable(inner) => {
            format!("{}, {}", leaf(inner, language), words("or null", "或 null"))
        }
    }
}
