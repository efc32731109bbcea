//! The screen of a run.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use zeropilot_units::Bytes;
use zeropilot_view::escaped;
use zeropilot_view::run::watch::{
    History, Look, Mood, RankState, alerts, bar, job_lines, machine, sparkline, words,
};
use zeropilot_view::run::{clock, loss_words};

use super::machine::host_line;
use super::{Brush, ends, window};

/// Lines about what happened that are left where ranks are many.
const STORY: u16 = 6;
/// Lines about the nodes of a job at most.
const NODES: usize = 9;
/// The room for a label or a value beside a curve.
const LABEL: usize = 10;
const VALUE: usize = 28;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    look: &Look,
    brush: Brush,
    scroll: usize,
) -> usize {
    let width = area.width;
    let job = job_lines(look, brush.language);
    let job_room = job.len();
    let alerts = alerts(look, brush.language).into_iter();
    let alerts = alerts.map(|alert| Line::styled(format!(" ! {alert}"), alarm(brush)));
    let job = job.into_iter().map(|line| Line::raw(format!(" {line}")));
    let alerts: Vec<Line<'_>> = job.chain(alerts).collect();
    let ranks = rank_lines(look, brush, width);
    let count = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
    let curves = 3;
    let alert_room = count(alerts.len()).min(count(job_room.min(NODES)) + 3);
    let host_room = u16::from(look.host.is_some() && look.is_running);
    let taken = 1 + 1 + curves + 1 + 1 + host_room + alert_room + 1 + 1 + STORY;
    let rank_room = count(ranks.len()).min(area.height.saturating_sub(taken).max(2));
    let [title, _, numbers, rank_head, rank_area, host, alert_area, _, story_head, story] =
        Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(1),
            Constraint::Length(curves + 1),
            Constraint::Length(1),
            Constraint::Length(rank_room),
            Constraint::Length(host_room),
            Constraint::Length(alert_room),
            Constraint::Length(u16::from(area.height >= 20)),
            Constraint::Length(1),
            Constraint::Min(0),
        ])
        .areas(area);
    draw_title(frame, title, look, brush);
    frame.render_widget(Paragraph::new(number_lines(look, brush, width)), numbers);
    let head = if ranks.is_empty() {
        brush.words("no ranks found yet", "尚未发现 rank").to_owned()
    } else {
        words::memory_head(look, brush.language)
    };
    frame.render_widget(brush.head(&head, width), rank_head);
    let (ranks, beyond) = window(ranks, rank_room, scroll);
    frame.render_widget(Paragraph::new(ranks), rank_area);
    if let Some(memory) = &look.host {
        frame.render_widget(host_line(memory, brush, width), host);
    }
    frame.render_widget(Paragraph::new(alerts), alert_area);
    frame.render_widget(brush.head(brush.words("events", "事件"), width), story_head);
    draw_story(frame, story, look, brush);
    beyond
}

fn alarm(brush: Brush) -> Style {
    brush.mood(Mood::Bad).add_modifier(Modifier::BOLD)
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, look: &Look, brush: Brush) {
    let (state, mood) = words::state(look, brush.language);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let left = Line::from(vec![
        Span::styled(format!(" {}", escaped(&look.info.id)), bold),
        Span::raw("  "),
        Span::styled(state, brush.mood(mood).add_modifier(Modifier::BOLD)),
        Span::raw(format!("  {}", clock(look.elapsed()))),
    ]);
    let right = words::attempt(look, brush.language).unwrap_or_default();
    ends(frame, area, left, Line::raw(format!("{right} ")));
}

/// Step, loss and speed.
fn number_lines(look: &Look, brush: Brush, width: u16) -> Vec<Line<'static>> {
    let (digest, language) = (&look.digest, brush.language);
    let room = usize::from(width).saturating_sub(1 + LABEL + VALUE + 1);
    let row = |label: &str, value: String, chart: String, color: Color| {
        Line::from(vec![
            Span::raw(format!(" {}{}", padded(label, LABEL), padded(&value, VALUE))),
            Span::styled(chart, brush.colored(color)),
        ])
    };
    let step = match (digest.step, look.total_steps()) {
        (Some(step), Some(total)) => format!("{step} / {total}"),
        (Some(step), None) => step.to_string(),
        (None, Some(total)) => format!("- / {total}"),
        (None, None) => "-".to_owned(),
    };
    let step_chart = look.total_steps().filter(|total| *total > 0).map(|total| {
        let done = digest.step.unwrap_or(0).min(total);
        let percent = done as f64 / total as f64 * 100.0;
        let rest =
            words::remaining(look, language).map_or(String::new(), |left| format!("  {left}"));
        let end = format!(" {percent:.0} %{rest}");
        let room = room.saturating_sub(Span::raw(end.as_str()).width());
        format!("{}{end}", bar(done, None, total, room, brush.glyphs))
    });
    let curve = |history: &History, floor| {
        let points = history.resampled(room);
        if points.len() > 1 { sparkline(&points, floor, brush.glyphs) } else { String::new() }
    };
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let loss = or_dash(digest.loss.map(loss_words));
    let rate = or_dash(digest.rates.last().map(|rate| words::rate(rate, language)));
    let mut lines = vec![
        row(brush.words("step", "步数"), step, step_chart.unwrap_or_default(), Color::Green),
        row("loss", loss, curve(&digest.losses, None), Color::Cyan),
        row(brush.words("speed", "速度"), rate, curve(&digest.rates, Some(0.0)), Color::Cyan),
    ];
    if let Some(tokens) = words::tokens(look, language) {
        lines.push(row("", tokens, String::new(), Color::Cyan));
    }
    lines
}

/// A text with blanks behind it up to a width, counted as a terminal shows it.
fn padded(text: &str, width: usize) -> String {
    let gap = width.saturating_sub(Span::raw(text).width());
    format!("{text}{}", " ".repeat(gap))
}

/// A line for each rank, with its GPU where it has one; then the GPUs of nobody here.
fn rank_lines(look: &Look, brush: Brush, width: u16) -> Vec<Line<'static>> {
    let most = look.digest.ranks.keys().next_back().copied().unwrap_or(0);
    let label = format!("rank {most}").len() + 1;
    let ranks = look.digest.ranks.iter();
    ranks.map(|(rank, state)| rank_line(look, (*rank, state), label, brush, width)).collect()
}

fn rank_line(
    look: &Look,
    (rank, state): (u32, &RankState),
    label: usize,
    brush: Brush,
    width: u16,
) -> Line<'static> {
    let level = state.level();
    let gpu = state.gpu.and_then(|(index, _)| {
        let gpu = look.digest.gpus.iter().find(|gpu| gpu.index == index)?;
        Some(format!("  GPU {index} {}", machine::gpu_facts(gpu, brush.glyphs)))
    });
    let end = format!(
        " {:>8}  {} {:>8}{}",
        Bytes(level.now).to_string(),
        brush.words("peak", "峰值"),
        Bytes(level.peak).to_string(),
        gpu.unwrap_or_default()
    );
    let taken = 1 + label + Span::raw(end.as_str()).width() + 1;
    let room = usize::from(width).saturating_sub(taken);
    let predicted = look.info.predicted;
    let color = match predicted {
        Some(predicted) if level.peak > predicted => Color::Red,
        Some(predicted) if level.peak as f64 > predicted as f64 * 0.95 => Color::Yellow,
        _ => Color::Green,
    };
    Line::from(vec![
        Span::raw(format!(" {}", padded(&format!("rank {rank}"), label))),
        Span::styled(
            bar(level.now, predicted, look.scale(), room, brush.glyphs),
            brush.colored(color),
        ),
        Span::raw(end),
    ])
}

/// What happened, the last of it at the bottom, a line each.
fn draw_story(frame: &mut Frame<'_>, area: Rect, look: &Look, brush: Brush) {
    let told = look.digest.told.iter().rev().filter_map(|(at, event)| {
        let told = words::told(event, brush.language)?;
        let at = clock((at - look.info.started_at).max(0.0) as u64);
        Some(Line::from(vec![
            Span::styled(format!(" {at:>7}  "), brush.colored(Color::DarkGray)),
            Span::styled(told, brush.mood(words::mood(event))),
        ]))
    });
    let mut lines: Vec<Line<'_>> = told.take(usize::from(area.height)).collect();
    lines.reverse();
    frame.render_widget(Paragraph::new(lines), area);
}
