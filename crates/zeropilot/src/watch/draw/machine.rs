//! The screen of a machine.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use zeropilot_record::GpuUse;
use zeropilot_units::Bytes;
use zeropilot_view::escaped;
use zeropilot_view::run::watch::bar;
use zeropilot_view::run::watch::machine::{
    HostMemory, MachineLook, gpu_facts, gpu_tenants, memory_head, no_gpus, processes_head,
};

use super::{Brush, window};

pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    look: &MachineLook,
    brush: Brush,
    scroll: usize,
) -> usize {
    let [title, _, body] =
        Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(0)])
            .areas(area);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let words = brush.words(" this machine", " 本机");
    frame.render_widget(Paragraph::new(Span::styled(words, bold)), title);
    let (lines, beyond) = window(lines(look, brush, area.width), body.height, scroll);
    frame.render_widget(Paragraph::new(lines), body);
    beyond
}

fn lines(look: &MachineLook, brush: Brush, width: u16) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(reason) = no_gpus(&look.gpus, brush.language) {
        lines.push(Line::raw(format!(" {reason}")));
    }
    for gpu in look.gpus.iter().flatten() {
        lines.extend(gpu_lines(gpu, brush, width));
    }
    lines.extend(look.memory.as_ref().map(|memory| host_line(memory, brush, width)));
    lines.push(Line::raw(""));
    lines.push(brush.head(&processes_head(look, brush.language), width));
    for process in &look.processes {
        let (rank, pid, rss) = (process.rank, process.pid, Bytes(process.rss).to_string());
        let command = escaped(&process.command);
        lines.push(Line::raw(format!(" rank {rank:<4} {pid:>8}  {rss:>8}  {command}")));
    }
    lines
}

fn gpu_lines(gpu: &GpuUse, brush: Brush, width: u16) -> Vec<Line<'static>> {
    let numbers = format!("  {} / {}", Bytes(gpu.used), Bytes(gpu.total));
    let facts = gpu_facts(gpu, brush.glyphs);
    let label = format!(" GPU {:<2} ", gpu.index);
    let numbers = if facts.is_empty() { numbers } else { format!("{numbers}  {facts}") };
    let mut under = escaped(&gpu.name).into_owned();
    let tenants = gpu_tenants(gpu, brush.language);
    if !tenants.is_empty() {
        under.push_str(&format!(": {tenants}"));
    }
    let dim = brush.colored(Color::DarkGray);
    vec![
        level(label, numbers, (gpu.used, gpu.total), brush, width),
        Line::styled(format!("        {under}"), dim),
    ]
}

/// Memory of the machine.
pub(super) fn host_line(memory: &HostMemory, brush: Brush, width: u16) -> Line<'static> {
    let numbers = format!("  {} / {}", Bytes(memory.used()), Bytes(memory.total));
    let label = format!(" {}  ", memory_head(brush.language));
    level(label, numbers, (memory.used(), memory.total), brush, width)
}

/// A bar between a label and numbers.
fn level(
    label: String,
    numbers: String,
    (part, whole): (u64, u64),
    brush: Brush,
    width: u16,
) -> Line<'static> {
    let taken = Span::raw(label.as_str()).width() + Span::raw(numbers.as_str()).width() + 1;
    let room = usize::from(width).saturating_sub(taken);
    let color = match part as f64 / whole.max(1) as f64 {
        share if share >= 0.97 => Color::Red,
        share if share >= 0.9 => Color::Yellow,
        _ => Color::Green,
    };
    Line::from(vec![
        Span::raw(label),
        Span::styled(bar(part, None, whole, room, brush.glyphs), brush.colored(color)),
        Span::raw(numbers),
    ])
}
