//! Drawing what was seen, for terminals from 80×24 on, with colours or without.

mod machine;
mod run;
#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use zeropilot_text::{Language, Text};
use zeropilot_view::run::watch::{Glyphs, Mood};

use super::source::Seen;

/// How to draw.
#[derive(Debug, Clone, Copy)]
pub(super) struct Brush {
    pub(super) color: bool,
    pub(super) glyphs: Glyphs,
    pub(super) language: Language,
}

impl Brush {
    fn words(self, en: &'static str, zh: &'static str) -> &'static str {
        Text::new(en, zh).get(self.language)
    }

    /// The style of a mood: colours of the terminal's own sixteen, so that its theme decides.
    fn mood(self, mood: Mood) -> Style {
        let color = match mood {
            Mood::Plain => return Style::new(),
            Mood::Good => Color::Green,
            Mood::Warning => Color::Yellow,
            Mood::Bad => Color::Red,
        };
        self.colored(color)
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }

    /// The head of a part, bold, with a line behind it as far as there is room.
    fn head(self, text: &str, width: u16) -> Line<'static> {
        let text = format!(" {text} ");
        let rule = match self.glyphs {
            Glyphs::Blocks => "─",
            Glyphs::Ascii => "-",
        };
        let room = usize::from(width).saturating_sub(Span::raw(text.as_str()).width());
        let dim = self.colored(Color::DarkGray);
        Line::from(vec![
            Span::styled(text, Style::new().add_modifier(Modifier::BOLD)),
            Span::styled(rule.repeat(room), dim),
        ])
    }
}

/// Draws; comes back with how many lines can be scrolled past.
pub(super) fn draw(frame: &mut Frame<'_>, seen: &Seen, brush: Brush, scroll: usize) -> usize {
    let [body, foot] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let beyond = match seen {
        Seen::Run(look) => run::draw(frame, body, look, brush, scroll),
        Seen::Machine(look) => machine::draw(frame, body, look, brush, scroll),
    };
    let mut words = brush.words(" q: quit", " q：退出").to_owned();
    if beyond > 0 {
        words.push_str(brush.words("   up/down: scroll", "   上/下：滚动"));
    }
    let dim = brush.colored(Color::DarkGray);
    frame.render_widget(Paragraph::new(Span::styled(words, dim)), foot);
    beyond
}

/// A line with something at each end; the right one gives way.
fn ends(frame: &mut Frame<'_>, area: Rect, left: Line<'_>, right: Line<'_>) {
    let gap = 2;
    if left.width() + right.width() + gap <= usize::from(area.width) {
        frame.render_widget(Paragraph::new(right).alignment(Alignment::Right), area);
        let area = Rect { width: u16::try_from(left.width()).unwrap_or(area.width), ..area };
        frame.render_widget(Paragraph::new(left), area);
    } else {
        frame.render_widget(Paragraph::new(left), area);
    }
}

/// The lines that fit, from a place on that leaves none of the area empty; with how many do not.
fn window(lines: Vec<Line<'_>>, height: u16, scroll: usize) -> (Vec<Line<'_>>, usize) {
    let height = usize::from(height);
    let beyond = lines.len().saturating_sub(height);
    let shown = lines.into_iter().skip(scroll.min(beyond)).take(height).collect();
    (shown, beyond)
}
