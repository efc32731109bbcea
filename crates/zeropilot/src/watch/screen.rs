//! The terminal while it is a screen: keys, pace, and giving it back.

use std::io;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use zeropilot_run::signals;
use zeropilot_text::{Language, tr};
use zeropilot_view::system;

use super::PACE;
use super::draw::{self, Brush};
use super::source::Source;

/// How long a key waits at most.
const PATIENCE: Duration = Duration::from_millis(200);

/// Shows until asked to stop, and gives the terminal back as it was, also when something here fails.
pub(super) fn show(source: &mut Source, brush: Brush) -> io::Result<()> {
    let signals = signals::catch_on_screen()?;
    let mut terminal = ratatui::try_init()?;
    let shown = follow(&mut terminal, source, brush, || signals.try_recv().is_ok());
    ratatui::restore();
    shown
}

fn follow(
    terminal: &mut DefaultTerminal,
    source: &mut Source,
    brush: Brush,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let mut scroll = 0;
    let (mut seen, mut looked) = (source.look(), Instant::now());
    while !is_over() {
        if looked.elapsed() >= PACE {
            (seen, looked) = (source.look(), Instant::now());
        }
        // What does not fit decides how far one can scroll.
        let mut beyond = 0;
        terminal.draw(|frame| beyond = draw::draw(frame, &seen, brush, scroll))?;
        scroll = scroll.min(beyond);
        if !event::poll(PATIENCE)? {
            continue;
        }
        if let Event::Key(key) = event::read()? {
            match wish(&key) {
                Some(Wish::Leave) => return Ok(()),
                Some(Wish::Up(lines)) => scroll = scroll.saturating_sub(lines),
                Some(Wish::Down(lines)) => scroll = scroll.saturating_add(lines).min(beyond),
                None => {}
            }
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Wish {
    Leave,
    Up(usize),
    Down(usize),
}

fn wish(key: &KeyEvent) -> Option<Wish> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    match key.code {
        KeyCode::Char('c' | 'd') if key.modifiers.contains(KeyModifiers::CONTROL) => {
            Some(Wish::Leave)
        }
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => Some(Wish::Leave),
        KeyCode::Up | KeyCode::Char('k') => Some(Wish::Up(1)),
        KeyCode::Down | KeyCode::Char('j') => Some(Wish::Down(1)),
        KeyCode::PageUp => Some(Wish::Up(10)),
        KeyCode::PageDown => Some(Wish::Down(10)),
        KeyCode::Home => Some(Wish::Up(usize::MAX)),
        KeyCode::End => Some(Wish::Down(usize::MAX)),
        _ => None,
    }
}

/// What to say if the terminal is none that can be drawn on.
pub(super) fn problem(error: &io::Error, language: Language) -> String {
    let error = system::failure(error, language);
    tr!(
        language,
        "error: cannot draw on this terminal: {error}\n  help: use `zeropilot watch --once` to print the same information as text",
        "错误：无法在这个终端上显示界面：{error}\n  建议：用 `zeropilot watch --once` 以文本形式输出"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_keys_leave() {
        let key = |code, modifiers| wish(&KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('q'), KeyModifiers::NONE), Some(Wish::Leave));
        assert_eq!(key(KeyCode::Esc, KeyModifiers::NONE), Some(Wish::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Wish::Leave));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::NONE), None);
    }
}
