//! A curve over time or steps as SVG, once for wide screens and once for narrow ones: letters do not shrink with the picture.

use std::fmt::Write as _;

use super::html;
use crate::run::clock;

/// The measures of a drawing.
struct Canvas {
    class: &'static str,
    width: f64,
    height: f64,
}

const CANVASES: [Canvas; 2] = [
    Canvas { class: "wide", width: 828.0, height: 200.0 },
    Canvas { class: "narrow", width: 358.0, height: 190.0 },
];
const LEFT: f64 = 74.0;
const RIGHT: f64 = 8.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 10.0;
/// Colours of the style sheet.
const COLORS: usize = 8;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// One of several equal ones, with a colour of its own.
    Own,
    /// One of many that are not told apart.
    Other,
    /// What was expected.
    Expected,
}

/// What the horizontal axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Axis {
    /// Seconds since the start.
    Time,
    /// Optimizer steps.
    Steps,
}

impl Axis {
    fn label(self, at: f64) -> String {
        match self {
            Self::Time => clock(at as u64),
            Self::Steps => format!("{at:.0}"),
        }
    }
}

/// One line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) role: Role,
    pub(super) points: Vec<(f64, f64)>,
}

/// A chart of lines from nothing to the end of its axis.
pub(super) struct Chart<'a> {
    pub(super) title: &'a str,
    pub(super) lines: &'a [Line],
    pub(super) axis: Axis,
    /// The end of the axis.
    pub(super) end: f64,
    /// When attempts began, but for the first.
    pub(super) attempts: &'a [f64],
    /// Whether the vertical axis begins at nothing.
    pub(super) from_zero: bool,
    /// Writes a value of the vertical axis.
    pub(super) label: fn(f64) -> String,
}

impl Chart<'_> {
    /// The figure; empty if there is no line to draw.
    pub(super) fn figure(&self) -> String {
        let drawn = |line: &&Line| line.role != Role::Expected && line.points.len() > 1;
        if !self.lines.iter().any(|line| drawn(&line)) {
            return String::new();
        }
        let title = html(self.title);
        let mut text = format!("<figure><figcaption>{title}</figcaption>");
        for canvas in &CANVASES {
            text.push_str(&self.svg(canvas, &title));
        }
        if self.lines.len() > 1 {
            text.push_str(&self.legend());
        }
        text.push_str("</figure>\n");
        text
    }

    /// The lowest and the highest value, which differ.
    fn range(&self) -> (f64, f64) {
        let values = self.lines.iter().flat_map(|line| &line.points).map(|point| point.1);
        let values = values.filter(|value| value.is_finite());
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let low = if self.from_zero { low.min(0.0) } else { low };
        if high > low { (low, high) } else { (low, low + low.abs().max(1.0)) }
    }

    fn svg(&self, canvas: &Canvas, title: &str) -> String {
        let Canvas { class, width, height } = canvas;
        let (low, high) = self.range();
        let end = self.end.max(1.0);
        let x = |seconds: f64| LEFT + seconds / end * (width - LEFT - RIGHT);
        let y =
            |value: f64| height - BOTTOM - (value - low) / (high - low) * (height - BOTTOM - TOP);
        let mut svg = format!(
            "<svg class=\"{class}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">"
        );
        for part in 0..=3 {
            let value = low + (high - low) * f64::from(part) / 3.0;
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\" class=\"grid\"/><text x=\"{}\" y=\"{:.1}\" class=\"axis\" text-anchor=\"end\">{}</text>",
                width - RIGHT,
                LEFT - 7.0,
                y(value) + 4.0,
                html(&(self.label)(value)),
                at = y(value),
            );
        }
        for at in self.attempts {
            let (at, bottom) = (x(*at), height - BOTTOM);
            let _ = write!(
                svg,
                "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{TOP}\" y2=\"{bottom}\" class=\"mark\"/>"
            );
        }
        for (index, line) in self.lines.iter().enumerate() {
            svg.push_str(&polyline(index, line, *width, (&x, &y)));
        }
        for (at, anchor) in [(0.0, "start"), (end / 2.0, "middle"), (end, "end")] {
            let _ = write!(
                svg,
                "<text x=\"{:.1}\" y=\"{}\" class=\"axis\" text-anchor=\"{anchor}\">{}</text>",
                x(at),
                height - 5.0,
                self.axis.label(at)
            );
        }
        svg.push_str("</svg>");
        svg
    }

    fn legend(&self) -> String {
        let mut text = "<p class=\"legend\">".to_owned();
        let mut has_others = false;
        for (index, line) in self.lines.iter().enumerate() {
            let is_repeat = line.role == Role::Other && has_others;
            has_others |= line.role == Role::Other;
            if !is_repeat {
                let (color, name) = (color(index, line.role), html(&line.name));
                let _ = write!(text, "<span><i style=\"background:{color}\"></i>{name}</span>");
            }
        }
        text.push_str("</p>");
        text
    }
}

fn color(index: usize, role: Role) -> String {
    match role {
        Role::Own => format!("var(--c{})", index % COLORS),
        Role::Other => "var(--dim)".to_owned(),
        Role::Expected => "var(--ink)".to_owned(),
    }
}

type Axes<'a> = (&'a dyn Fn(f64) -> f64, &'a dyn Fn(f64) -> f64);

fn polyline(index: usize, line: &Line, width: f64, (x, y): Axes<'_>) -> String {
    // More points than pixels show nothing more.
    let step = line.points.len().div_ceil(width as usize).max(1);
    let last = line.points.last().filter(|_| line.points.len() % step != 1 && step > 1);
    let points: Vec<String> = line
        .points
        .iter()
        .step_by(step)
        .chain(last)
        .filter(|(at, value)| at.is_finite() && value.is_finite())
        .map(|(at, value)| format!("{:.1},{:.1}", x(*at), y(*value)))
        .collect();
    let class = match line.role {
        Role::Own => "curve",
        Role::Other => "curve faint",
        Role::Expected => "curve dashed",
    };
    format!(
        "<polyline points=\"{}\" class=\"{class}\" stroke=\"{}\"><title>{}</title></polyline>",
        points.join(" "),
        color(index, line.role),
        html(&line.name)
    )
}
