//! One step as a picture: a lane for every stream, a block for everything that happens in it.

use std::fmt::Write as _;

use zeropilot_step::time::{Span, Stream, What};
use zeropilot_text::Language;

use super::SimulateReport;
use super::human::seconds;
use super::words::{stream as stream_words, what};
use crate::html::text as xml;
use crate::memory::headline;

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 60.0;
const LANE: f64 = 40.0;

/// Okabe and Ito's colours, which people with any colour vision can tell apart.
fn colour(what: What) -> &'static str {
    match what {
        What::Forward(_) => "#0072b2",
        What::Backward(_) => "#56b4e9",
        What::Update => "#cc79a7",
        What::Call(_) => "#e69f00",
        What::Copy(_) => "#009e73",
        What::Disk => "#7a5195",
        What::Wait(_) => "#dddddd",
    }
}

/// The picture.
pub fn svg(report: &SimulateReport<'_>, spans: &[Span], language: Language) -> String {
    let end = spans.iter().map(|span| span.end).fold(f64::MIN_POSITIVE, f64::max);
    let lanes: Vec<Stream> = Stream::ALL
        .into_iter()
        .filter(|stream| spans.iter().any(|span| span.stream == *stream))
        .collect();
    let height = TOP + LANE * lanes.len() as f64 + 50.0;
    let title = xml(&headline(report.name, &report.question, language));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<title>{title}</title>\n\
         <text x=\"20\" y=\"30\" font-size=\"15\" font-weight=\"600\">{title}</text>\n"
    );
    let x = |moment: f64| LEFT + (WIDTH - LEFT - RIGHT) * moment / end;
    for (lane, stream) in lanes.iter().enumerate() {
        let y = TOP + LANE * lane as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            y + 20.0,
            stream_words(*stream).get(language)
        );
        for block in blocks(spans, *stream, end) {
            let (left, right) = (x(block.begin), x(block.end));
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\"><title>{} {}</title></rect>",
                (right - left).max(0.3),
                LANE - 10.0,
                colour(block.what),
                xml(&what(|_| None, block.what, language)),
                seconds(block.end - block.begin)
            );
        }
    }
    axis(&mut svg, end, TOP + LANE * lanes.len() as f64, x);
    svg.push_str("</svg>\n");
    svg
}

/// Spans of a stream; what is thinner than a line and looks alike is one block.
fn blocks(spans: &[Span], stream: Stream, end: f64) -> Vec<Span> {
    let thin = end / (WIDTH - LEFT - RIGHT) / 2.0;
    let mut blocks: Vec<Span> = Vec::new();
    for span in spans.iter().filter(|span| span.stream == stream) {
        match blocks.last_mut() {
            Some(last)
                if colour(last.what) == colour(span.what) && span.begin - last.end < thin =>
            {
                last.end = span.end;
            }
            _ => blocks.push(*span),
        }
    }
    blocks
}

fn axis(svg: &mut String, end: f64, y: f64, x: impl Fn(f64) -> f64) {
    for part in 0..=8 {
        let moment = end * f64::from(part) / 8.0;
        let at = x(moment);
        let _ = writeln!(
            svg,
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" stroke=\"#888\" stroke-dasharray=\"1 5\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            y + 4.0,
            y + 22.0,
            seconds(moment)
        );
    }
}
