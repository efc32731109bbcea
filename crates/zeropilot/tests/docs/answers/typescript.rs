//! The types of the page.

use std::fmt::Write as _;

use zeropilot_view::answers::Shapes;

use super::kind::{Definition, Field, Kind, description};

const HEAD: &str = "// Answers as JSON has them, and words beside them. Generated from the program's types:\n// ZEROPILOT_UPDATE_DOCS=1 cargo test -p zeropilot --test docs\n";

fn kind(of: &Kind) -> String {
    match of {
        Kind::Any => "unknown".to_owned(),
        Kind::Boolean => "boolean".to_owned(),
        Kind::Integer | Kind::Number => "number".to_owned(),
        Kind::Text => "string".to_owned(),
        Kind::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            words.join(" | ")
        }
        Kind::Named(name) => name.clone(),
        Kind::List(item) => format!("{}[]", kind(item)),
        Kind::Table(item) => format!("Record<string, {}>", kind(item)),
        Kind::Nullable(inner) => format!("{} | null", kind(inner)),
    }
}

fn member(field: &Field) -> String {
    let mark = if field.is_required { "" } else { "?" };
    format!("{}{mark}: {}", field.name, kind(&field.kind))
}

pub(crate) fn module(shapes: &Shapes) -> String {
    let mut text = HEAD.to_owned();
    for (name, schema) in &shapes.types {
        let about = description(schema);
        match Definition::of(schema) {
            Definition::Alias(of) => {
                let _ = write!(text, "\n/// {about}\nexport type {name} = {};\n", kind(&of));
            }
            Definition::Object(fields) => {
                let members: Vec<String> = fields.iter().map(member).collect();
                let members = members.join(";\n  ");
                let _ =
                    write!(text, "\n/// {about}\nexport interface {name} {{\n  {members};\n}}\n");
            }
        }
    }
    text
}
