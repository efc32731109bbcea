//! The frozen dataclasses of the Python module.

use std::fmt::Write as _;

use zeropilot_view::answers::{Role, Shapes};

use super::kind::{Definition, Field, Kind, description, reachable};

/// Commands that Python has as functions.
const VERBS: [&str; 7] =
    ["check", "memory", "memory --compare", "plan", "simulate", "new", "diagnose"];

const HEAD: &str = r#""""Answers as JSON has them.

Generated from the program's types: ``ZEROPILOT_UPDATE_DOCS=1 cargo test -p zeropilot --test docs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Literal, Optional, Tuple

from ._result import CheckResult, Explanation, MemoryResult, Result
"#;

fn kind(of: &Kind) -> String {
    match of {
        Kind::Any => "Any".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::Integer => "int".to_owned(),
        Kind::Number => "float".to_owned(),
        Kind::Text => "str".to_owned(),
        Kind::OneOf(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("Literal[{}]", words.join(", "))
        }
        Kind::Named(name) => name.clone(),
        Kind::List(item) => format!("Tuple[{}, ...]", kind(item)),
        Kind::Table(item) => format!("Dict[str, {}]", kind(item)),
        Kind::Nullable(inner) => format!("Optional[{}]", kind(inner)),
    }
}

/// What an answer inherits.
fn base(name: &str, role: Option<Role>) -> &'static str {
    match (name, role) {
        ("Memory", _) => "(MemoryResult)",
        ("Check", _) => "(CheckResult)",
        (_, Some(Role::Explanation(_))) => "(Explanation)",
        (_, None | Some(Role::Page)) => "",
        (_, Some(_)) => "(Result)",
    }
}

fn class(name: &str, about: &str, fields: &[Field], base: &str) -> String {
    // Docstrings name code as Python does.
    let about = about.replace('`', "``");
    let mut text =
        format!("\n\n@dataclass(frozen=True)\nclass {name}{base}:\n    \"\"\"{about}\"\"\"\n\n");
    for field in fields.iter().filter(|field| field.is_required) {
        let _ = writeln!(text, "    {}: {}", field.name, kind(&field.kind));
    }
    for field in fields.iter().filter(|field| !field.is_required) {
        let of = match &field.kind {
            Kind::Nullable(_) => kind(&field.kind),
            other => format!("Optional[{}]", kind(other)),
        };
        let _ = writeln!(text, "    {}: {of} = None", field.name);
    }
    text
}

pub(crate) fn module(shapes: &Shapes) -> String {
    let is_answered = |role: &Role| match role {
        Role::Answer(verb) | Role::List(verb) => VERBS.contains(verb),
        Role::Python(_) | Role::Explanation(_) => true,
        Role::Page => false,
    };
    let roots = shapes.roots.iter().filter(|(_, role)| is_answered(role));
    let roots: Vec<&str> = roots.map(|(name, _)| name.as_str()).collect();
    let mut text = HEAD.to_owned();
    for name in reachable(&roots, &shapes.types) {
        let schema = &shapes.types[&name];
        let role = shapes.roots.iter().find(|(root, _)| *root == name).map(|(_, role)| *role);
        match Definition::of(schema) {
            Definition::Alias(of) => {
                let _ = write!(text, "\n{name} = {}\n", kind(&of));
            }
            Definition::Object(fields) => {
                text.push_str(&class(&name, &description(schema), &fields, base(&name, role)));
            }
        }
    }
    let kinds = shapes.roots.iter().filter_map(|(name, role)| match role {
        Role::Explanation(kind) => Some(format!("    {kind:?}: {name},\n")),
        _ => None,
    });
    let kinds: String = kinds.collect();
    text + &format!("\n\nKINDS: Dict[str, type[Explanation]] = {{\n{kinds}}}\n")
}
