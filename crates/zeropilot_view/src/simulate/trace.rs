//! One step as a trace for chrome://tracing and Perfetto: complete events, microseconds, one thread per stream.

use serde_json::{Value, json};
use zeropilot_step::lower::Lowered;
use zeropilot_step::time::{Span, Stream, What};
use zeropilot_text::Language;

use super::words::{stream as stream_words, what};

/// The trace; modules are named as the program names them.
pub fn trace(lowered: &Lowered, spans: &[Span], language: Language) -> Value {
    let mut events: Vec<Value> = Stream::ALL
        .into_iter()
        .filter(|stream| spans.iter().any(|span| span.stream == *stream))
        .map(|stream| {
            json!({
                "name": "thread_name", "ph": "M", "pid": 0, "tid": stream as u32,
                "args": { "name": stream_words(stream).get(language) },
            })
        })
        .collect();
    let name = |module: u32| {
        let model = lowered.model();
        let name = model.module_name(model.module_id(module as usize)?);
        Some(name).filter(|name| !name.is_empty())
    };
    events.extend(spans.iter().map(|span| {
        json!({
            "name": what(name, span.what, language),
            "cat": category(span.what),
            "ph": "X",
            "pid": 0,
            "tid": span.stream as u32,
            "ts": micros(span.begin),
            "dur": micros(span.end) - micros(span.begin),
            "args": arguments(span.what),
        })
    }));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

/// Nanoseconds are enough, and keep neighbours from overlapping by a rounding error.
fn micros(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e3
}

fn category(what: What) -> &'static str {
    match what {
        What::Forward(_) => "forward",
        What::Backward(_) => "backward",
        What::Update => "optimizer",
        What::Call(_) => "communication",
        What::Copy(_) => "copy",
        What::Disk => "disk",
        What::Wait(_) => "wait",
    }
}

fn arguments(what: What) -> Value {
    match what {
        What::Call(call) => json!({
            "bytes": call.bytes(), "elements": call.elements, "ranks": call.ranks,
        }),
        What::Copy(copy) => json!({ "bytes": copy.bytes }),
        _ => json!({}),
    }
}
