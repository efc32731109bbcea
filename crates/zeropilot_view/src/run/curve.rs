//! A curve over time as SVG.

use std::fmt::Write as _;

use super::report::html;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 12.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 10.0;
/// More points than pixels show nothing more.
const POINTS: usize = 700;
const COLORS: [&str; 6] = ["#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2"];

/// One line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// A chart with a line for each name, from the start of the run to its `end`; empty if there is no line to draw. `label`
/// writes a value of the vertical axis.
pub(super) fn chart(
    title: &str,
    lines: &[Line],
    end: f64,
    label: impl Fn(f64) -> String,
) -> String {
    let all = || {
        lines
            .iter()
            .flat_map(|line| line.points.iter())
            .filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    if all().count() < 2 {
        return String::new();
    }
    let bounds = |of: fn(&(f64, f64)) -> f64| {
        all().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        })
    };
    let ((x0, x1), (y0, y1)) = ((0.0, end), bounds(|point| point.1));
    let y0 = y0.min(0.0);
    let span = |low: f64, high: f64| if high > low { high - low } else { 1.0 };
    let x = |value: f64| LEFT + (value - x0) / span(x0, x1) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - (value - y0) / span(y0, y1) * (HEIGHT - BOTTOM - TOP);
    let mut svg = format!(
        "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        html(title),
        html(title)
    );
    for part in 0..=2 {
        let value = y0 + span(y0, y1) * f64::from(part) / 2.0;
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/><text x=\"{}\" y=\"{:.1}\" class=\"axis\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(value) + 4.0,
            html(&label(value)),
            at = y(value),
        );
    }
    for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
        let step = line.points.len().div_ceil(POINTS).max(1);
        let points: Vec<String> = line
            .points
            .iter()
            .step_by(step)
            .filter(|(x, y)| x.is_finite() && y.is_finite())
            .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
            .collect();
        let _ = write!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"1.8\"><title>{}</title></polyline>",
            points.join(" "),
            html(&line.name)
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{LEFT}\" y=\"{h:.1}\" class=\"axis\">0:00</text><text x=\"{}\" y=\"{h:.1}\" class=\"axis\" text-anchor=\"end\">{}</text></svg>",
        WIDTH - RIGHT,
        super::clock((x1 - x0) as u64),
        h = HEIGHT - 6.0,
    );
    if lines.len() > 1 {
        svg.push_str("<p class=\"legend\">");
        for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
            let _ = write!(svg, "<span style=\"color:{color}\">■</span> {} ", html(&line.name));
        }
        svg.push_str("</p>");
    }
    svg.push_str("</figure>");
    svg
}
