//! Replacing pieces of a text: members taken out, put in, renamed, and nothing else touched.

use zeropilot_config::syntax::{Comment, Member, Node, Span, Value};

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
    let Value::Object(members) = &object.value else { return None };
    let index = members.iter().position(|member| member.key_span == key_span)?;
    let member = &members[index];
    let span = if let Some(next) = members.get(index + 1) {
        Span::new(member.key_span.start, next.key_span.start)
    } else if let Some(previous) = index.checked_sub(1).map(|previous| &members[previous]) {
        Span::new(previous.value.span.end, member.value.span.end)
    } else {
        Span::new(member.key_span.start, after_comma(subject.text, member.value.span.end))
    };
    (!has_comment(subject.comments, span)).then(|| Edit::new(span, ""))
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
    let Value::Object(present) = &object.value else { return None };
    if !subject.text_of(object.span).starts_with('{') {
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
    let layout = if has_comment(subject.comments, gap) { " " } else { subject.text_of(gap) };
    let separator = format!(",{}", if layout.is_empty() { " " } else { layout });
    let text = format!("{}{separator}", write(&separator));
    Some(Edit::new(Span::new(key_span.start, key_span.start), text))
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
    fn edits_keep_everything_else() {
        let edits = [Edit::new(Span::new(1, 2), "XY"), Edit::new(Span::new(3, 3), "-")];
        assert_eq!(apply("abcdé", &edits), "aXYc-dé");
        assert_eq!(apply("é", &[Edit::new(Span::new(1, 2), "x")]), "é");
    }
}
