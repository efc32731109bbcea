//! One step as a picture: a lane for every stream, a block for everything that happens in it.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthStr;
use zeropilot_step::time::Span;
use zeropilot_text::Language;

use super::SimulateReport;
use super::human::seconds;
use super::streams::{Sort, end, lanes, sorts};
use super::words::{stream as stream_words, what};
use crate::html::text as xml;
use crate::memory::headline;

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 60.0;
const LANE: f64 = 40.0;

/// The picture.
pub fn svg(report: &SimulateReport<'_>, spans: &[Span], language: Language) -> String {
    let end = end(spans);
    let lanes = lanes(spans, 2.0 * (WIDTH - LEFT - RIGHT));
    let height = TOP + LANE * lanes.len() as f64 + 74.0;
    let title = xml(&headline(report.name, &report.question, language));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n<title>{title}</title>\n\
         <text x=\"20\" y=\"30\" font-size=\"15\" font-weight=\"600\">{title}</text>\n"
    );
    let x = |moment: f64| LEFT + (WIDTH - LEFT - RIGHT) * moment / end;
    for (place, lane) in lanes.iter().enumerate() {
        let y = TOP + LANE * place as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 10.0,
            y + 20.0,
            stream_words(lane.stream).get(language)
        );
        for block in &lane.blocks {
            let (left, right) = (x(block.begin), x(block.end));
            let _ = writeln!(
                svg,
                "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.1}\" fill=\"{}\"><title>{} {}</title></rect>",
                (right - left).max(0.3),
                LANE - 10.0,
                Sort::of(block.what).colour(),
                xml(&what(|_| None, block.what, language)),
                seconds(block.end - block.begin)
            );
        }
    }
    let below = TOP + LANE * lanes.len() as f64;
    axis(&mut svg, end, below, x);
    legend(&mut svg, spans, below + 44.0, language);
    svg.push_str("</svg>\n");
    svg
}

/// What the colours stand for, as far as they are there.
fn legend(svg: &mut String, spans: &[Span], y: f64, language: Language) {
    let mut x = LEFT;
    for sort in sorts(spans) {
        let words = sort.words(language);
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{words}</text>",
            sort.colour(),
            x + 18.0,
            y + 11.0
        );
        // A letter of Chinese is twice as wide as a Latin one.
        x += 44.0 + 7.0 * words.width() as f64;
    }
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
