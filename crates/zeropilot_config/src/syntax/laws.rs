//! What holds for every text, checked on arbitrary ones, and the two readers on single ones.

use proptest::prelude::*;

use super::*;

type Parse = fn(&str) -> Result<Document, SyntaxError>;

const READERS: [Parse; 2] = [parse_hjson, parse_json];

/// Arbitrary text that is likely to mean something to the readers.
fn config_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "'", "'''", "#", "//", "/*", "*/", "\\", "\\u0041",
            "\n", "\r\n", "\r", " ", "\u{a0}", "\u{1c}", "\u{feff}", "null", "true", "false", "a",
            "é", "1", "-0.5", "1e3", "٣", "a: ", "\"b\": ", "'''\n", "stage", "{a: 1}", "[1, 2]",
        ]).prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

fn assert_within(inner: Span, outer: Span, text: &str) {
    assert!(inner.of(text).is_some(), "{inner:?} is not a part of {text:?}");
    assert!(
        outer.start <= inner.start && inner.end <= outer.end,
        "{inner:?} is not inside {outer:?} of {text:?}"
    );
}

fn assert_nested(node: &Node, outer: Span, text: &str) {
    assert_within(node.span, outer, text);
    let mut end = node.span.start;
    let mut in_order = |span: Span| {
        assert!(end <= span.start, "{span:?} overlaps the span before it in {text:?}");
        end = span.end;
    };
    match &node.value {
        Value::Array(items) => {
            for item in items {
                in_order(item.span);
                assert_nested(item, node.span, text);
            }
        }
        Value::Object(members) => {
            for member in members {
                in_order(member.key_span);
                assert_within(member.key_span, node.span, text);
                in_order(member.value.span);
                assert_nested(&member.value, node.span, text);
            }
        }
        _ => {}
    }
}

fn assert_places(parse: Parse, text: &str) {
    let whole = Span::new(0, text.len());
    match parse(text) {
        Ok(document) => {
            assert_eq!(document.text(), text);
            assert_nested(document.root(), whole, text);
            for comment in document.comments() {
                assert_within(comment.span, whole, text);
            }
        }
        Err(error) => assert_within(error.span, whole, text),
    }
}

fn scalars<'a>(node: &'a Node, found: &mut Vec<&'a Node>) {
    match &node.value {
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(members) => members.iter().for_each(|m| scalars(&m.value, found)),
        _ => found.push(node),
    }
}

/// Reads a scalar of `document` again from its own span, in the place of a list's item. A line
/// break goes before and after it, as unquoted text runs to the end of its line.
fn assert_scalars_read_again(parse: Parse, document: &Document) {
    let mut found = Vec::new();
    scalars(document.root(), &mut found);
    for node in found {
        let written = node.span.of(document.text()).unwrap();
        if written.starts_with("'''") && written.contains(['\n', '\r']) {
            // What is removed from its lines depends on the column it started in.
            continue;
        }
        let again = parse(&format!("[\n{written}\n]")).unwrap();
        let Value::Array(items) = &again.root().value else { unreachable!() };
        let is_nan = |value: &Value| matches!(value, Value::Float(float) if float.is_nan());
        let same = items[0].value == node.value || is_nan(&items[0].value) && is_nan(&node.value);
        assert!(same, "{written:?} is read as {:?}, then as {:?}", node.value, items[0].value);
    }
}

proptest! {
    #[test]
    fn spans_lie_in_the_text_nested_and_in_order(text in config_text()) {
        for parse in READERS {
            assert_places(parse, &text);
        }
    }

    #[test]
    fn a_scalar_read_again_from_its_span_is_the_same(text in config_text()) {
        for parse in READERS {
            if let Ok(document) = parse(&text) {
                assert_scalars_read_again(parse, &document);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(text) = decode(&bytes) {
            for parse in READERS {
                assert_places(parse, text);
            }
        }
    }

    #[test]
    fn every_offset_has_the_line_and_column_an_editor_shows(text in "[a\né\r😀]{0,20}") {
        let index = LineIndex::new(&text);
        let unified = text.replace("\r\n", " \n").replace('\r', "\n");
        for (offset, _) in text.char_indices() {
            let before = &unified[..offset];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap().chars().count() + 1;
            prop_assert_eq!(index.line_column(offset), LineColumn { line, column });
        }
    }
}

#[test]
fn deep_nesting_is_refused_at_once() {
    for parse in READERS {
        for open in ["[", "{\"a\":", "[{\"a\":"] {
            let error = parse(&open.repeat(2_000_000)).unwrap_err();
            assert!(matches!(error.kind, SyntaxErrorKind::TooDeep { .. }), "{error:?}");
        }
    }
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_hjson(&nested(MAX_HJSON_DEPTH)).is_ok());
    assert!(parse_hjson(&nested(MAX_HJSON_DEPTH + 1)).is_err());
    assert!(parse_json(&nested(MAX_JSON_DEPTH)).is_ok());
    assert!(parse_json(&nested(MAX_JSON_DEPTH + 1)).is_err());
}

#[test]
fn long_hostile_texts_are_read_in_linear_time() {
    let hostile = [
        "'''".repeat(1_000_000),
        format!("[\n{}", "'''''' ".repeat(500_000)),
        format!("[{}\n]", "''''''".repeat(500_000)),
        format!("a: {}", "1,".repeat(1_000_000)),
        format!("a: {}", "null/".repeat(1_000_000)),
        "a ".repeat(1_000_000),
        "/**/".repeat(1_000_000),
        "/*".repeat(1_000_000),
        format!("[{}", "/* */ 1,".repeat(500_000)),
        "\r\n".repeat(1_000_000),
        format!("{{\"a\": {}}}", "9".repeat(2_000_000)),
        format!("[1.{}e{}]", "9".repeat(1_000_000), "9".repeat(1_000_000)),
        format!("\"{}\"", "\\u0041".repeat(500_000)),
        format!("{{{}}}", "a:1,".repeat(500_000)),
        format!("[\r\n{}]", "{a:1},\r\n".repeat(200_000)),
        format!("[{}]", format!("{},", "9".repeat(4300)).repeat(300)),
    ];
    for text in &hostile {
        for parse in READERS {
            if let Ok(document) = parse(text) {
                document.duplicate_keys();
            }
        }
    }
}

#[test]
fn the_last_of_duplicates_is_the_one_that_counts() {
    let document = parse_json(r#"{"a": 1, "b": {"a": 2}, "a": 3}"#).unwrap();
    assert_eq!(document.get("a").unwrap().value, Value::Int(3.into()));
    assert_eq!(document.get("b").unwrap().get("a").unwrap().value, Value::Int(2.into()));
    assert_eq!(document.get("c"), None);
    assert_eq!(document.get("a").unwrap().get("a"), None);
}
