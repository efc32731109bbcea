//! The config as the dictionary of dictionaries that the front ends walk by dotted keys.
//!
//! Both libraries split a long key at its dots and go down with `.get`, so that an absent or null
//! section is simply not there while anything else that is no object raises. Keys that contain dots
//! themselves are therefore looked for in the wrong place, here as there.

use crate::python::python_type;
use crate::syntax::{Member, Node, Span, Value};

/// Something on the way to a key is no object.
pub(super) struct Broken {
    pub(super) path: String,
    pub(super) span: Span,
    pub(super) found: &'static str,
}

/// Gives every object one value per key, as Python's reader does: the last value, at the place of
/// the first.
pub(super) fn without_duplicates(node: &Node) -> Node {
    let value = match &node.value {
        Value::Array(items) => Value::Array(items.iter().map(without_duplicates).collect()),
        Value::Object(members) => {
            let mut kept: Vec<Member> = Vec::with_capacity(members.len());
            for member in members {
                let value = without_duplicates(&member.value);
                match kept.iter_mut().find(|earlier| earlier.key == member.key) {
                    Some(earlier) => {
                        earlier.key_span = member.key_span;
                        earlier.value = value;
                    }
                    None => kept.push(Member {
                        key: member.key.clone(),
                        key_span: member.key_span,
                        value,
                    }),
                }
            }
            Value::Object(kept)
        }
        other => other.clone(),
    };
    Node { span: node.span, value }
}

/// `node.get(key)`, null included; `Err` if `node` is no object.
pub(super) fn member<'a>(node: &'a Node, key: &str) -> Result<Option<&'a Node>, &'static str> {
    match &node.value {
        Value::Object(members) => {
            Ok(members.iter().find(|member| member.key == key).map(|member| &member.value))
        }
        other => Err(python_type(other)),
    }
}

/// The value under a dotted key, null included; `None` if it or a section above it is not there.
pub(super) fn find<'a>(root: &'a Node, long_key: &str) -> Result<Option<&'a Node>, Broken> {
    let mut node = root;
    let mut walked = 0;
    let mut parts = long_key.split('.').peekable();
    while let Some(part) = parts.next() {
        let found = member(node, part).map_err(|found| Broken {
            path: long_key[..walked].trim_end_matches('.').to_owned(),
            span: node.span,
            found,
        })?;
        walked += part.len() + 1;
        match found {
            Some(value) if parts.peek().is_none() => return Ok(Some(value)),
            Some(Node { value: Value::Null, .. }) | None => return Ok(None),
            Some(section) => node = section,
        }
    }
    Ok(None)
}

/// The place of a value that [`find`] finds.
pub(super) fn find_mut<'a>(root: &'a mut Node, long_key: &str) -> Option<&'a mut Node> {
    long_key.split('.').try_fold(root, |node, part| match &mut node.value {
        Value::Object(members) => {
            members.iter_mut().find(|member| member.key == part).map(|member| &mut member.value)
        }
        _ => None,
    })
}

/// All keys whose value is no object, dotted, in the order of iteration.
pub(super) fn leaf_keys(root: &Node) -> Vec<String> {
    fn collect(node: &Node, prefix: &str, keys: &mut Vec<String>) {
        let Value::Object(members) = &node.value else { return };
        for member in members {
            let key = format!("{prefix}{}", member.key);
            match member.value.value {
                Value::Object(_) => collect(&member.value, &format!("{key}."), keys),
                _ => keys.push(key),
            }
        }
    }
    let mut keys = Vec::new();
    collect(root, "", &mut keys);
    keys
}
