//! Replacing pieces of a text: members taken out, put in, renamed, and nothing else touched.

use serde_json::Value as Json;
use zeropilot_config::syntax::{Comment, Member, Node, Span, Value, parse_hjson};

use crate::subject::Subject;

/// A piece of text to be replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced; empty for an insertion.
    pub span: Span,
    /// What stands there afterwards.
    pub text: String,
}

impl Edit {
    /// Replaces `span` by `text`.
    pub fn new(span: Span, text: impl Into<String>) -> Self {
        Self { span, text: text.into() }
    }
}

/// The text after `edits`, which must be in order and not overlap; those that do not fit are left
/// out.
pub fn apply(text: &str, edits: &[Edit]) -> String {
    let mut edited = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let Some(kept) = text.get(at..edit.span.start) else { continue };
        if text.get(edit.span.start..edit.span.end).is_none() {
            continue;
        }
        edited.push_str(kept);
        edited.push_str(&edit.text);
        at = edit.span.end;
    }
    edited.push_str(&text[at..]);
    edited
}

/// Takes a member out, with the comma that belongs to it. `None` if a comment would go with it.
pub(crate) fn remove_member(subject: &Subject<'_>, object: &Node, key_span: Span) -> Option<Edit> {
    removal((subject.text, subject.comments), object, key_span)
}

/// A text with its comments.
type Commented<'a> = (&'a str, &'a [Comment]);

fn removal((text, comments): Commented<'_>, object: &Node, key_span: Span) -> Option<Edit> {
    let Value::Object(members) = &object.value else { return None };
    let index = members.iter().position(|member| member.key_span == key_span)?;
    let member = &members[index];
    let span = if let Some(next) = members.get(index + 1) {
        Span::new(member.key_span.start, next.key_span.start)
    } else if let Some(previous) = index.checked_sub(1).map(|previous| &members[previous]) {
        Span::new(previous.value.span.end, member.value.span.end)
    } else {
        Span::new(member.key_span.start, after_comma(text, member.value.span.end))
    };
    (!has_comment(comments, span)).then(|| Edit::new(span, ""))
}

/// The end of a comma that follows `end`, or `end`.
fn after_comma(text: &str, end: usize) -> usize {
    let rest = &text[end..];
    let blank = rest.len() - rest.trim_start().len();
    if rest[blank..].starts_with(',') { end + blank + 1 } else { end }
}

fn has_comment(comments: &[Comment], span: Span) -> bool {
    comments.iter().any(|comment| comment.span.start < span.end && span.start < comment.span.end)
}

/// Puts members before all others of an object in braces, laid out like its first one.
pub(crate) fn insert_members(
    subject: &Subject<'_>,
    object: &Node,
    members: &[(&str, &str)],
) -> Option<Edit> {
    insertion((subject.text, subject.comments), object, members)
}

fn insertion(
    (text, comments): Commented<'_>,
    object: &Node,
    members: &[(&str, &str)],
) -> Option<Edit> {
    let Value::Object(present) = &object.value else { return None };
    if !object.span.of(text)?.starts_with('{') {
        return None;
    }
    let inside = object.span.start + 1;
    let write = |separator: &str| {
        let written: Vec<_> =
            members.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        written.join(separator)
    };
    let Some(Member { key_span, .. }) = present.first() else {
        return Some(Edit::new(Span::new(inside, inside), write(", ")));
    };
    let gap = Span::new(inside, key_span.start);
    let layout = if has_comment(comments, gap) { " " } else { gap.of(text)? };
    let separator = format!(",{}", if layout.is_empty() { " " } else { layout });
    let text = format!("{}{separator}", write(&separator));
    Some(Edit::new(Span::new(key_span.start, key_span.start), text))
}

/// The text of a config with this value at a path, and everything else as it is; of a section, other members stay.
/// `None` if that cannot be written.
pub fn put_key(text: &str, path: &[&str], value: &Json) -> Option<String> {
    let document = parse_hjson(text).ok()?;
    let (key, parents) = path.split_last()?;
    let object = parents.iter().try_fold(document.root(), |node, key| node.get(key))?;
    let edit = match (object.get(key), value) {
        (Some(Node { value: Value::Object(_), .. }), Json::Object(members)) => {
            return members.iter().try_fold(text.to_owned(), |text, (key, value)| {
                put_key(&text, &[path, &[key.as_str()]].concat(), value)
            });
        }
        (Some(node), _) if is_same(&node.value, value) => return Some(text.to_owned()),
        (Some(node), _) => Edit::new(node.span, spaced(value)),
        (None, _) => {
            insertion((text, document.comments()), object, &[(*key, spaced(value).as_str())])?
        }
    };
    Some(apply(text, &[edit]))
}

/// The text of a config without the key at a path, if it is there. `None` if a comment would go with it.
pub fn take_key(text: &str, path: &[&str]) -> Option<String> {
    let document = parse_hjson(text).ok()?;
    let (key, parents) = path.split_last()?;
    let object = parents.iter().try_fold(document.root(), |node, key| node.get(key));
    let Some((object, member)) = object.and_then(|object| Some((object, object.member(key)?)))
    else {
        return Some(text.to_owned());
    };
    let edit = removal((text, document.comments()), object, member.key_span)?;
    Some(apply(text, &[edit]))
}

/// Whether Python would find both equal.
fn is_same(written: &Value, value: &Json) -> bool {
    match (written, value) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(written), Json::Bool(value)) => written == value,
        (Value::Int(written), Json::Number(value)) => written.to_string() == value.to_string(),
        (Value::Float(written), Json::Number(value)) => Some(*written) == value.as_f64(),
        (Value::Str(written), Json::String(value)) => written == value,
        _ => false,
    }
}

/// JSON in one line, as people write it.
fn spaced(value: &Json) -> String {
    match value {
        Json::Object(members) => {
            let written: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("\"{key}\": {}", spaced(value)))
                .collect();
            format!("{{{}}}", written.join(", "))
        }
        Json::Array(items) => {
            format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// Whether the value's own text can stand anywhere, followed by a comma: an unquoted Hjson text,
/// which takes the rest of its line, cannot.
pub(crate) fn can_move(subject: &Subject<'_>, value: &Node) -> bool {
    let text = subject.text_of(value.span);
    match value.value {
        Value::Str(_) => text.starts_with('"') && text.ends_with('"'),
        Value::Object(_) | Value::Array(_) => !has_comment(subject.comments, value.span),
        _ => true,
    }
}

/// Gives a key another name, in quotes.
pub(crate) fn rename(key_span: Span, name: &str) -> Edit {
    Edit::new(key_span, format!("\"{name}\""))
}

/// Writes both edits, the earlier one first.
pub(crate) fn in_order(one: Edit, other: Edit) -> Vec<Edit> {
    if one.span.start <= other.span.start { vec![one, other] } else { vec![other, one] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_put_and_taken_and_the_rest_stays_as_it_is_written() {
        let config = "{\n  // why\n  \"zero_optimization\": {\n    \"stage\": 2, # of 3\n    \"reduce_bucket_size\": 5e8,\n    \"offload_optimizer\": {\"device\": \"cpu\"}\n  }\n}\n";
        let zero = serde_json::json!({"stage": 3, "reduce_bucket_size": 500_000_000, "overlap_comm": true});
        let put = put_key(config, &["zero_optimization"], &zero).expect("a text");
        assert_eq!(
            put,
            config.replace("\"stage\": 2,", "\"overlap_comm\": true,\n    \"stage\": 3,")
        );
        let path = ["zero_optimization", "offload_optimizer"];
        let without = take_key(&put, &path).expect("a text");
        assert_eq!(without, put.replace(",\n    \"offload_optimizer\": {\"device\": \"cpu\"}", ""));
        assert_eq!(take_key(&without, &path).as_ref(), Some(&without));
        let section = serde_json::json!({"a": [1, true]});
        assert_eq!(
            put_key("{}", &["bf16"], &section).as_deref(),
            Some("{\"bf16\": {\"a\": [1, true]}}")
        );
        assert_eq!(put_key("stage: 2", &["bf16"], &section), None);
    }

    #[test]
    fn edits_keep_everything_else() {
        let edits = [Edit::new(Span::new(1, 2), "XY"), Edit::new(Span::new(3, 3), "-")];
        assert_eq!(apply("abcdé", &edits), "aXYc-dé");
        assert_eq!(apply("é", &[Edit::new(Span::new(1, 2), "x")]), "é");
    }
}
