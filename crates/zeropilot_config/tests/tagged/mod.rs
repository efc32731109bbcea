//! Values in the encoding of `oracle/json_lines.py`, byte for byte as Python writes it.

use zeropilot_config::syntax::Value;

/// The value as the servers write it: types apart, floats by their bits, members in order.
pub(crate) fn tagged(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&format!("{{\"int\": \"{value}\"}}")),
        Value::Float(value) if value.is_nan() => out.push_str("{\"float\": \"nan\"}"),
        Value::Float(value) => {
            out.push_str(&format!("{{\"float\": \"{:016x}\"}}", value.to_bits()))
        }
        Value::Str(value) => text(value, out),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(&item.value, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("{\"dict\": [");
            for (at, member) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", [" } else { "[" });
                text(&member.key, out);
                out.push_str(", ");
                write(&member.value.value, out);
                out.push(']');
            }
            out.push_str("]}");
        }
    }
}

/// A string as Python's `json.dumps` writes it.
fn text(value: &str, out: &mut String) {
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}
