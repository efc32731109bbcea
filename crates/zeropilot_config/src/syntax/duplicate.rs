//! Keys written twice in one object.

use std::collections::HashMap;

use super::{Document, Member, Node, Span, Value};

/// A key that occurs again in the same object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DuplicateKey<'a> {
    /// The key.
    pub key: &'a str,
    /// Where it stands first.
    pub first: Span,
    /// Where it stands again.
    pub later: Span,
}

/// Up to here comparing all pairs is faster than hashing.
const FEW: usize = 16;

fn among_few<'a>(members: &'a [Member], found: &mut Vec<DuplicateKey<'a>>) {
    for (index, member) in members.iter().enumerate().skip(1) {
        if let Some(first) = members[..index].iter().find(|earlier| earlier.key == member.key) {
            let first = first.key_span;
            found.push(DuplicateKey { key: &member.key, first, later: member.key_span });
        }
    }
}

fn among_many<'a>(members: &'a [Member], found: &mut Vec<DuplicateKey<'a>>) {
    let mut seen = HashMap::with_capacity(members.len());
    for member in members {
        let first = *seen.entry(member.key.as_str()).or_insert(member.key_span);
        if first != member.key_span {
            found.push(DuplicateKey { key: &member.key, first, later: member.key_span });
        }
    }
}

impl Node {
    /// Every repeated key in this value and inside it, in the order of the text.
    ///
    /// A key written three times appears twice, each time with the place of the first.
    pub fn duplicate_keys(&self) -> Vec<DuplicateKey<'_>> {
        let mut found = Vec::new();
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            match &node.value {
                Value::Array(items) => pending.extend(items),
                Value::Object(members) => {
                    if members.len() <= FEW {
                        among_few(members, &mut found);
                    } else {
                        among_many(members, &mut found);
                    }
                    pending.extend(members.iter().map(|member| &member.value));
                }
                _ => {}
            }
        }
        found.sort_unstable_by_key(|duplicate| duplicate.later);
        found
    }
}

impl Document {
    /// Every repeated key of the document, as [`Node::duplicate_keys`].
    pub fn duplicate_keys(&self) -> Vec<DuplicateKey<'_>> {
        self.root().duplicate_keys()
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_hjson;

    #[test]
    fn repeated_keys_are_found_per_object() {
        let text = "{a: {b: 1, c: 2, b: 3}, b: [{b: 1}], a: 4, a: 5}";
        let document = parse_hjson(text).unwrap();
        let places: Vec<_> = document
            .duplicate_keys()
            .iter()
            .map(|duplicate| (duplicate.key, duplicate.first.start, duplicate.later.start))
            .collect();
        assert_eq!(places, [("b", 5, 17), ("a", 1, 37), ("a", 1, 43)]);
    }
}
