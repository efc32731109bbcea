//! Any bytes through both readers: neither panics, and every place lies in the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_config::syntax::{
    Document, LineIndex, Node, Span, SyntaxError, Value, decode, parse_hjson, parse_json,
};

fuzz_target!(|bytes: &[u8]| {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(error) => {
            assert!(error.span.start < error.span.end && error.span.end <= bytes.len());
            return;
        }
    };
    check(text, parse_hjson(text));
    check(text, parse_json(text));
});

fn check(text: &str, outcome: Result<Document, SyntaxError>) {
    let whole = Span::new(0, text.len());
    match outcome {
        Ok(document) => {
            assert_eq!(document.text(), text);
            nested(document.root(), whole, text);
            for comment in document.comments() {
                within(comment.span, whole, text);
            }
            for duplicate in document.duplicate_keys() {
                assert!(duplicate.first.end <= duplicate.later.start);
            }
        }
        Err(error) => {
            within(error.span, whole, text);
            let place = LineIndex::new(text).line_column(error.span.start);
            assert!(place.line >= 1 && place.column >= 1);
        }
    }
}

fn nested(node: &Node, outer: Span, text: &str) {
    within(node.span, outer, text);
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| nested(item, node.span, text)),
        Value::Object(members) => {
            for member in members {
                within(member.key_span, node.span, text);
                nested(&member.value, node.span, text);
            }
        }
        _ => {}
    }
}

fn within(inner: Span, outer: Span, text: &str) {
    assert!(inner.of(text).is_some(), "{inner:?} is no part of the text");
    assert!(outer.start <= inner.start && inner.end <= outer.end, "{inner:?} leaves {outer:?}");
}
