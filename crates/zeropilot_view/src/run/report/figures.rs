//! The curves of a run: memory against the prediction, loss, speed.

use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::Page;
use super::curve::{Axis, Chart, Line, Role};
use super::measures::Measures;

/// More ranks than this are not told apart by colours.
const TOLD_APART: usize = 8;

/// All of them that there is something to draw for.
pub(super) fn figures(page: &Page<'_>, measures: &Measures, language: Language) -> String {
    let name = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let (end, attempts) = (measures.end, measures.attempts.as_slice());
    let one = |name: &str, points: &[(f64, f64)]| {
        [Line { name: name.to_owned(), role: Role::Own, points: points.to_vec() }]
    };
    let title = if measures.on_gpu.is_empty() {
        name("Host memory of ranks (RSS)", "各 rank 主机内存（RSS）")
    } else {
        name("GPU memory of ranks", "各 rank 显存")
    };
    let memory = memory_lines(page, measures, language);
    let losses = loss_lines(measures, language);
    let charts = [
        Chart {
            title,
            lines: &memory,
            from_zero: true,
            label: |value| Bytes(value.max(0.0) as u64).to_string(),
            axis: Axis::Time,
            end,
            attempts,
        },
        Chart {
            title: name("loss over steps", "各步的 loss"),
            lines: &losses,
            axis: Axis::Steps,
            from_zero: false,
            label: |value| format!("{value:.3}"),
            end: last_step(&losses),
            attempts: &[],
        },
        Chart {
            title: name("Steps per second", "每秒步数"),
            lines: &one("steps", &measures.rates),
            from_zero: true,
            label: |value| format!("{value:.2}"),
            axis: Axis::Time,
            end,
            attempts,
        },
    ];
    let figures: String = charts.iter().map(Chart::figure).collect();
    let note = if attempts.is_empty() || figures.is_empty() {
        String::new()
    } else {
        let words = name("Dotted line: a new attempt starts.", "竖虚线：开始新的一次尝试。");
        format!("<p class=\"legend\">{words}</p>\n")
    };
    figures + &note
}

/// A line for each attempt: one that resumes makes some steps again, and one that starts from scratch all of them.
fn loss_lines(measures: &Measures, language: Language) -> Vec<Line> {
    let all = measures.losses_by_step.iter().filter(|(_, points)| !points.is_empty());
    all.map(|(number, points)| {
        let name = tr!(language, "attempt {number}", "第 {number} 次尝试");
        Line { name, role: Role::Own, points: points.clone() }
    })
    .collect()
}

fn last_step(lines: &[Line]) -> f64 {
    let steps = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    steps.fold(1.0, f64::max)
}

fn memory_lines(page: &Page<'_>, measures: &Measures, language: Language) -> Vec<Line> {
    let name = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language);
    let ranks = measures.memory_of_ranks();
    let fullest = measures.fullest().map(|(rank, _)| rank);
    let mut lines: Vec<Line> = ranks
        .iter()
        .map(|(rank, points)| {
            let is_told = ranks.len() <= TOLD_APART || Some(*rank) == fullest;
            let (role, name) = if is_told {
                (Role::Own, format!("rank {rank}"))
            } else {
                (Role::Other, name("other ranks", "其他 rank").to_owned())
            };
            Line { name, role, points: points.clone() }
        })
        .collect();
    if let Some(predicted) = page.info.predicted {
        let (name, value) = (name("predicted per GPU", "单卡预测值").to_owned(), predicted as f64);
        let points = vec![(0.0, value), (measures.end, value)];
        lines.push(Line { name, role: Role::Expected, points });
    }
    lines
}
