//! A dictionary in a Python script as the JSON it would be, every byte in its place.

use tree_sitter::{Node, Parser, Tree};
use zeropilot_config::syntax::Span;

use crate::python_reader::{DEEPEST, named};

/// The script with everything blank but one dictionary, and that as JSON, every byte in its place.
/// `None` if something in it is not written out, or stands there twice.
pub fn as_json(text: &str, place: Span) -> Option<String> {
    let tree = parsed(text)?;
    let node = tree.root_node().descendant_for_byte_range(place.start, place.end)?;
    let mut bytes: Vec<u8> =
        text.bytes().map(|byte| if byte == b'\n' || byte == b'\r' { byte } else { b' ' }).collect();
    copy(text, node, &mut bytes, 0)?;
    String::from_utf8(bytes).ok()
}

/// A member of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// What it is, as a command line would give it, or as the script writes it where it is not written out.
    pub(crate) value: String,
    pub(crate) is_written_out: bool,
    pub(crate) span: Span,
}

/// The members of a dictionary, without those that are `None`; `**` is the name of what is brought from elsewhere.
pub(crate) fn members(text: &str, place: Span) -> Option<Vec<Member>> {
    let tree = parsed(text)?;
    let node = tree.root_node().descendant_for_byte_range(place.start, place.end)?;
    let is_dictionary = node.kind() == "dictionary";
    let items = named(node).filter(|item| is_dictionary && item.kind() != "comment");
    let member = |item: Node<'_>| {
        let field = |name| item.child_by_field_name(name);
        let name = field("key").filter(|key| key.kind() == "string");
        let name =
            name.map(|key| text.get(key.byte_range()).unwrap_or("").trim_matches(['"', '\'']));
        let value = field("value").unwrap_or(item);
        let written = text.get(value.byte_range()).unwrap_or("");
        let is_written_out = match value.kind() {
            "string" => written.starts_with(['"', '\'']) && !written.contains('\\'),
            kind => matches!(kind, "integer" | "float" | "true" | "false"),
        };
        (value.kind() != "none").then(|| Member {
            name: name.unwrap_or("**").to_owned(),
            value: written.trim_matches(['"', '\'']).to_owned(),
            is_written_out,
            span: Span::new(item.start_byte(), item.end_byte()),
        })
    };
    is_dictionary.then(|| items.filter_map(member).collect())
}

fn parsed(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_python::LANGUAGE.into()).ok()?;
    parser.parse(text, None)
}

fn copy(text: &str, node: Node<'_>, bytes: &mut [u8], depth: usize) -> Option<()> {
    if depth > DEEPEST {
        return None;
    }
    let own = text.get(node.byte_range())?;
    let start = node.start_byte();
    let mut put =
        |at: usize, piece: &str| bytes[at..at + piece.len()].copy_from_slice(piece.as_bytes());
    match node.kind() {
        "integer" | "float" => {
            serde_json::from_str::<serde_json::Number>(own).ok()?;
            put(start, own);
        }
        "true" | "false" => put(start, &own.to_lowercase()),
        "none" => put(start, "null"),
        "unary_operator" if own.starts_with('-') => {
            serde_json::from_str::<serde_json::Number>(own).ok()?;
            put(start, own);
        }
        "string" => {
            let quote = own.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
            let inside = own.strip_prefix(quote)?.strip_suffix(quote)?;
            if inside.contains(['"', '\'', '\\', '\n']) {
                return None;
            }
            put(start, &format!("\"{inside}\""));
        }
        "dictionary" | "list" => {
            let is_list = node.kind() == "list";
            put(start, if is_list { "[" } else { "{" });
            put(node.end_byte() - 1, if is_list { "]" } else { "}" });
            let items: Vec<Node<'_>> =
                named(node).filter(|item| item.kind() != "comment").collect();
            let mut keys = Vec::new();
            for (index, item) in items.iter().enumerate() {
                if is_list {
                    copy(text, *item, bytes, depth + 1)?;
                } else {
                    let key = Some(*item)
                        .filter(|item| item.kind() == "pair")?
                        .child_by_field_name("key")
                        .filter(|key| key.kind() == "string")?;
                    let value = item.child_by_field_name("value")?;
                    let name = text.get(key.byte_range())?.trim_matches(['"', '\'']);
                    if keys.contains(&name) {
                        return None;
                    }
                    keys.push(name);
                    copy(text, key, bytes, depth + 1)?;
                    copy(text, value, bytes, depth + 1)?;
                    let colon = text.get(key.end_byte()..value.start_byte())?.find(':')?;
                    bytes[key.end_byte() + colon] = b':';
                }
                if let Some(next) = items.get(index + 1) {
                    let comma = text.get(item.end_byte()..next.start_byte())?.find(',')?;
                    bytes[item.end_byte() + comma] = b',';
                }
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::Value;
    use crate::python_reader::read;

    #[test]
    fn members_are_read_one_by_one() {
        let text = "f({'a': \"b\", 'c': g(1), 'd': None, **e})";
        let Value::Dict(place) = read(text).calls[0].positional[0].0 else { panic!("{text}") };
        let found = members(text, place).expect("members");
        let found: Vec<_> =
            found.iter().map(|it| (&*it.name, &*it.value, it.is_written_out)).collect();
        assert_eq!(found, [("a", "b", true), ("c", "g(1)", false), ("**", "**e", false)]);
    }

    #[test]
    fn a_dictionary_becomes_json_in_its_place() {
        let text = "x = 1\nc = {'a': True,  # why\n  \"b\": [1, None,], 'é': -2.5e3,}\nf(c)\n";
        let script = read(text);
        let call = script.calls.iter().find(|call| call.callee == "f").expect("the call");
        let Value::Dict(place) = call.positional[0].0 else { panic!("{call:?}") };
        let json = as_json(text, place).expect("literals only");
        assert_eq!(json.len(), text.len());
        let value: serde_json::Value = serde_json::from_str(json.trim()).expect("JSON");
        assert_eq!(value, serde_json::json!({"a": true, "b": [1, null], "é": -2.5e3}));
        for open in
            ["f({'a': x})", "f({'a': 1, 'a': 2})", "f({**d})", "f({'a': 1_000})", "f({1: 2})"]
        {
            let script = read(open);
            let Value::Dict(place) = script.calls[0].positional[0].0 else { panic!("{open}") };
            assert_eq!(as_json(open, place), None, "{open}");
        }
    }
}
