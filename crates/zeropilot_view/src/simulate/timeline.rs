//! One step drawn with characters: a line for every stream that does something.

use unicode_width::UnicodeWidthStr;
use zeropilot_step::time::{Span, Stream, What};
use zeropilot_text::Text;

use super::human::seconds;
use super::words::stream as stream_words;
use crate::Layout;

/// How busy a stream is in a column.
const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];

/// The lines; `columns` wide.
pub fn timeline(spans: &[Span], columns: usize, layout: &Layout) -> String {
    let language = layout.language;
    let end = spans.iter().map(|span| span.end).fold(0.0, f64::max);
    let busy: Vec<(Stream, Vec<f64>)> = Stream::ALL
        .into_iter()
        .map(|stream| (stream, columns_of(spans, stream, columns, end)))
        .filter(|(_, busy)| busy.iter().any(|share| *share > 0.0))
        .collect();
    let name = |stream: &Stream| stream_words(*stream).get(language);
    let widest = busy.iter().map(|(stream, _)| name(stream).width()).max().unwrap_or(0);
    let mut text = String::new();
    for (stream, shares) in &busy {
        let padding = " ".repeat(widest - name(stream).width());
        let line: String = shares.iter().map(|share| shade(*share)).collect();
        text.push_str(&format!("  {}{padding} {line}\n", name(stream)));
    }
    let ruler = format!("0{:>width$}", seconds(end), width = columns.saturating_sub(1));
    text.push_str(&format!("  {}{ruler}\n", " ".repeat(widest + 1)));
    text.push_str(
        Text::new(
            "  The chart shows only the first of identical micro-steps, then the optimizer step.\n",
            "  相同的 micro step 只画第一个，最后是参数更新。\n",
        )
        .get(language),
    );
    text
}

/// The share of every column in which a stream works.
fn columns_of(spans: &[Span], stream: Stream, columns: usize, end: f64) -> Vec<f64> {
    let mut busy = vec![0.0; columns];
    let width = end / columns as f64;
    let works = |span: &&Span| span.stream == stream && !matches!(span.what, What::Wait(_));
    for span in spans.iter().filter(works) {
        for (place, share) in busy.iter_mut().enumerate().skip(place(span.begin, width)) {
            let (left, right) = (place as f64 * width, (place + 1) as f64 * width);
            if left >= span.end {
                break;
            }
            *share += (span.end.min(right) - span.begin.max(left)).max(0.0) / width;
        }
    }
    busy
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a column")]
fn place(moment: f64, width: f64) -> usize {
    (moment / width) as usize
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below five")]
fn shade(share: f64) -> char {
    let last = SHADES.len() - 1;
    SHADES[((share.clamp(0.0, 1.0) * last as f64).ceil() as usize).min(last)]
}
