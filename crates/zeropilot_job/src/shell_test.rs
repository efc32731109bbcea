//! Conditions of shell scripts, as far as the script itself settles them: comparisons of texts and numbers that are
//! known, joined by `&&`, `||` and `!`. Files, exit codes of programs and patterns are left to the run.

use tree_sitter::Node;

/// Joined conditions that are looked at within each other.
const DEEPEST: usize = 20;

/// Whether a condition holds; `None` if only the run knows. `value` gives the text of a word, if that is known.
pub(crate) fn holds(
    node: Node<'_>,
    text: &str,
    value: &dyn Fn(Node<'_>) -> Option<String>,
) -> Option<bool> {
    Condition { text, value }.holds(node, 0)
}

struct Condition<'a> {
    text: &'a str,
    value: &'a dyn Fn(Node<'_>) -> Option<String>,
}

impl Condition<'_> {
    fn holds(&self, node: Node<'_>, depth: usize) -> Option<bool> {
        let parts: Vec<Node<'_>> = children(node).collect();
        let named: Vec<Node<'_>> = parts.iter().copied().filter(Node::is_named).collect();
        let operators =
            || parts.iter().filter(|part| !part.is_named()).map(|part| self.slice(*part));
        if depth > DEEPEST {
            return None;
        }
        match (node.kind(), named.as_slice()) {
            ("test_command" | "parenthesized_expression", [inner]) => self.holds(*inner, depth + 1),
            ("negated_command", [inner]) => Some(!self.holds(*inner, depth + 1)?),
            ("list" | "binary_expression", [one, other])
                if operators().any(|it| matches!(it, "&&" | "||")) =>
            {
                let (one, other) = (self.holds(*one, depth + 1), self.holds(*other, depth + 1));
                match operators().any(|it| it == "||") {
                    true if one == Some(true) || other == Some(true) => Some(true),
                    true => Some(one? || other?),
                    false if one == Some(false) || other == Some(false) => Some(false),
                    false => Some(one? && other?),
                }
            }
            // The operator may be a node with a name of its own.
            ("binary_expression", [one, .., other]) => {
                let between = self.text.get(one.end_byte()..other.start_byte())?.trim();
                self.compared(*one, between, *other)
            }
            ("unary_expression", [.., inner]) => {
                let before = self.text.get(node.start_byte()..inner.start_byte())?.trim();
                match before {
                    "!" => Some(!self.holds(*inner, depth + 1)?),
                    "-z" => Some((self.value)(*inner)?.is_empty()),
                    "-n" => Some(!(self.value)(*inner)?.is_empty()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn compared(&self, one: Node<'_>, operator: &str, other: Node<'_>) -> Option<bool> {
        let is_pattern = other.kind() != "string"
            && other.kind() != "raw_string"
            && self.slice(other).contains(['*', '?', '[', '(']);
        let (one, other) = ((self.value)(one)?, (self.value)(other).filter(|_| !is_pattern)?);
        let numbers = || Some((one.parse::<i64>().ok()?, other.parse::<i64>().ok()?));
        match operator {
            "=" | "==" => Some(one == other),
            "!=" => Some(one != other),
            "-eq" => numbers().map(|(one, other)| one == other),
            "-ne" => numbers().map(|(one, other)| one != other),
            "-lt" => numbers().map(|(one, other)| one < other),
            "-le" => numbers().map(|(one, other)| one <= other),
            "-gt" => numbers().map(|(one, other)| one > other),
            "-ge" => numbers().map(|(one, other)| one >= other),
            _ => None,
        }
    }

    fn slice(&self, node: Node<'_>) -> &str {
        self.text.get(node.byte_range()).unwrap_or("")
    }
}

/// Everything directly in a node.
pub(crate) fn children(node: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    (0..node.child_count()).filter_map(move |index| node.child(index))
}
