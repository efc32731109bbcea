//! The memory of a GPU over one step, as a picture.

use std::fmt::Write as _;

use zeropilot_step::memory::Stretch;
use zeropilot_step::zero::Place;
use zeropilot_text::{Language, Text};
use zeropilot_units::Bytes;

use super::part::{Part, parts};
use super::phase;
use super::{MemoryReport, headline};
use crate::html::text as xml;

const WIDTH: f64 = 1040.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 80.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 64.0;
const RIGHT: f64 = 290.0;

/// Okabe and Ito's colours, which people with any colour vision can tell apart, and two greys.
fn colour(part: Part) -> &'static str {
    match part {
        Part::Weights => "#0072b2",
        Part::OtherModels => "#004466",
        Part::Gathered => "#56b4e9",
        Part::Master => "#7a5195",
        Part::Optimizer => "#cc79a7",
        Part::Gradients => "#d55e00",
        Part::Buckets => "#f0e442",
        Part::Activations => "#009e73",
        Part::Logits => "#e69f00",
        Part::ActivationGradients => "#88ccaa",
        Part::Temporaries => "#999999",
        Part::Rollout => "#8d6e63",
        Part::Runtime => "#cccccc",
    }
}

/// Name, words and colour of every part that memory is shown in.
pub fn legend(language: Language) -> Vec<(&'static str, &'static str, &'static str)> {
    Part::ALL.map(|part| (part.name(), part.words(language), colour(part))).to_vec()
}

/// A stacked area for every part, the card's limit as a line, phases on the axis.
pub fn svg(report: &MemoryReport<'_>, stretches: &[Stretch], language: Language) -> String {
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes.expected());
    let most = stretches.iter().map(|s| s.alive.at(Place::Device).0);
    let most = most.chain(capacity.map(|bytes| bytes.0)).max().unwrap_or(1).max(1);
    let plot = Plot { most, count: stretches.len().max(1) };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let title = xml(&headline(report.name, &report.question, language));
    let _ = writeln!(svg, "<title>{title}</title>");
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"30\" font-size=\"15\" font-weight=\"600\">{title}</text>"
    );
    plot.axis(&mut svg);
    plot.areas(&mut svg, stretches, language);
    plot.phases(&mut svg, stretches, language);
    if let Some(capacity) = capacity {
        plot.limit(&mut svg, capacity, language);
    }
    svg.push_str("</svg>\n");
    svg
}

struct Plot {
    most: u64,
    count: usize,
}

impl Plot {
    fn x(&self, place: usize) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * place as f64 / self.count as f64
    }

    fn y(&self, bytes: u64) -> f64 {
        let full = HEIGHT - TOP - BOTTOM;
        // A little air above the highest point.
        HEIGHT - BOTTOM - full * bytes as f64 / (self.most as f64 * 1.05)
    }

    fn axis(&self, svg: &mut String) {
        for quarter in 0..=4 {
            let bytes = self.most / 4 * quarter;
            let y = self.y(bytes);
            let _ = writeln!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#e4e4e4\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                Bytes(bytes)
            );
        }
    }

    fn areas(&self, svg: &mut String, stretches: &[Stretch], language: Language) {
        let rows: Vec<Vec<(Part, Bytes)>> =
            stretches.iter().map(|s| parts(&s.alive, &[Place::Device])).collect();
        let of = |row: &[(Part, Bytes)], part: Part| {
            row.iter().find(|(other, _)| *other == part).map_or(0, |(_, bytes)| bytes.0)
        };
        let mut below = vec![0_u64; stretches.len()];
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"#555\">{}</text>",
            WIDTH - RIGHT + 16.0,
            TOP,
            Text::new("most during the step", "一步之内的最大值").get(language)
        );
        let mut legend = 0;
        for part in Part::ALL {
            if rows.iter().all(|row| of(row, part) == 0) {
                continue;
            }
            let most = Bytes(rows.iter().map(|row| of(row, part)).max().unwrap_or(0));
            let above: Vec<u64> =
                rows.iter().zip(&below).map(|(row, below)| below + of(row, part)).collect();
            let _ = writeln!(
                svg,
                "<path d=\"{}\" fill=\"{}\"><title>{} {most}</title></path>",
                self.outline(&below, &above),
                colour(part),
                xml(part.words(language))
            );
            let y = TOP + 12.0 + 22.0 * f64::from(legend);
            let _ = writeln!(
                svg,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"12\" height=\"12\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{} {most}</text>",
                WIDTH - RIGHT + 16.0,
                y,
                colour(part),
                WIDTH - RIGHT + 34.0,
                y + 11.0,
                xml(part.words(language))
            );
            legend += 1;
            below = above;
        }
    }

    fn outline(&self, below: &[u64], above: &[u64]) -> String {
        let mut path = String::new();
        for (place, bytes) in above.iter().enumerate() {
            let letter = if place == 0 { 'M' } else { 'L' };
            let (left, right, y) = (self.x(place), self.x(place + 1), self.y(*bytes));
            let _ = write!(path, "{letter}{left:.1} {y:.1}L{right:.1} {y:.1}");
        }
        for (place, bytes) in below.iter().enumerate().rev() {
            let (left, right, y) = (self.x(place), self.x(place + 1), self.y(*bytes));
            let _ = write!(path, "L{right:.1} {y:.1}L{left:.1} {y:.1}");
        }
        path.push('Z');
        path
    }

    fn phases(&self, svg: &mut String, stretches: &[Stretch], language: Language) {
        let mut before = None;
        for (place, stretch) in stretches.iter().enumerate() {
            if before == Some(stretch.phase) {
                continue;
            }
            before = Some(stretch.phase);
            let word = phase::title(stretch.phase);
            let x = self.x(place);
            let _ = writeln!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\" stroke=\"#888\" stroke-dasharray=\"2 4\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#333\">{}</text>",
                HEIGHT - BOTTOM + 8.0,
                x + 4.0,
                HEIGHT - BOTTOM + 24.0,
                word.get(language)
            );
        }
    }

    fn limit(&self, svg: &mut String, capacity: Bytes, language: Language) {
        let y = self.y(capacity.0);
        let word = Text::new("each GPU has", "每卡可用").get(language);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{0:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#c00000\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\
             <text x=\"{1:.1}\" y=\"{2:.1}\" fill=\"#c00000\" text-anchor=\"end\">{word} {capacity}</text>",
            WIDTH - RIGHT,
            WIDTH - RIGHT - 6.0,
            y - 6.0
        );
    }
}
