//! A row at the bottom of a terminal that says how a run stands, and gives way to the run's own output.
//!
//! Where the output stops in the middle of a line, as bars of tqdm do, the row is not drawn: it would be written behind
//! the bar, and the next carriage return would leave both standing.

use std::io::Write;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// To the beginning of the line, and nothing in it.
const CLEAR: &str = "\r\u{1b}[2K";
const SPINNER: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The row.
#[derive(Debug, Default)]
pub(super) struct StatusRow {
    /// What it says.
    message: String,
    /// Which of the signs is shown.
    turn: usize,
    /// Whether it is on the terminal now.
    is_drawn: bool,
    /// Whether the output stopped in the middle of a line.
    is_line_open: bool,
}

impl StatusRow {
    /// Says something new.
    pub(super) fn say(&mut self, message: String, columns: usize, terminal: &mut impl Write) {
        self.message = message;
        self.turn += 1;
        self.draw(columns, terminal);
    }

    /// Takes the row away, so that something else can be written.
    pub(super) fn clear(&mut self, terminal: &mut impl Write) {
        if std::mem::take(&mut self.is_drawn) {
            let _ = terminal.write_all(CLEAR.as_bytes()).and_then(|()| terminal.flush());
        }
    }

    /// Takes the row away for good.
    pub(super) fn finish(&mut self, terminal: &mut impl Write) {
        self.clear(terminal);
        self.message.clear();
    }

    /// Puts the row back behind output that ended like this.
    pub(super) fn follow(&mut self, output: &[u8], columns: usize, terminal: &mut impl Write) {
        if let Some(last) = output.last() {
            self.is_line_open = *last != b'\n';
        }
        self.draw(columns, terminal);
    }

    /// Begins a line of its own for words that are not the run's.
    pub(super) fn end_line(&mut self, terminal: &mut impl Write) {
        if std::mem::take(&mut self.is_line_open) {
            let _ = terminal.write_all(b"\n");
        }
    }

    fn draw(&mut self, columns: usize, terminal: &mut impl Write) {
        if self.is_line_open || self.message.is_empty() {
            return;
        }
        let sign = SPINNER[self.turn % SPINNER.len()];
        let row = cut(&format!("{sign} {}", self.message), columns.saturating_sub(1));
        self.is_drawn = write!(terminal, "{CLEAR}{row}").and_then(|()| terminal.flush()).is_ok();
    }
}

/// As much of a text as fits.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |character: &char| {
        taken += character.width().unwrap_or(0);
        taken < columns
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(act: impl FnOnce(&mut StatusRow, &mut Vec<u8>)) -> String {
        let (mut row, mut terminal) = (StatusRow::default(), Vec::new());
        act(&mut row, &mut terminal);
        String::from_utf8(terminal).expect("text")
    }

    #[test]
    fn the_row_gives_way_to_lines_and_comes_back() {
        let text = written(|row, terminal| {
            row.say("step 1".to_owned(), 80, terminal);
            row.clear(terminal);
            row.follow(b"hello\n", 80, terminal);
        });
        assert_eq!(text, "\r\u{1b}[2K⠙ step 1\r\u{1b}[2K\r\u{1b}[2K⠙ step 1");
    }

    #[test]
    fn a_row_that_is_taken_away_stays_away() {
        let text = written(|row, terminal| {
            row.say("step 1".to_owned(), 80, terminal);
            row.finish(terminal);
            row.follow(b"done\n", 80, terminal);
        });
        assert_eq!(text, "\r\u{1b}[2K⠙ step 1\r\u{1b}[2K");
    }

    #[test]
    fn nothing_is_written_behind_a_bar() {
        let text = written(|row, terminal| {
            for _ in 0..3 {
                row.clear(terminal);
                row.follow(b"\r 14%|###   | 28/200 [00:01<00:09]", 80, terminal);
                row.say("step 28/200".to_owned(), 80, terminal);
            }
        });
        assert_eq!(text, "");
        let words = written(|row, terminal| {
            row.follow(b"\r 14%|###", 80, terminal);
            row.end_line(terminal);
            row.end_line(terminal);
        });
        assert_eq!(words, "\n");
    }

    #[test]
    fn the_row_never_takes_two_lines() {
        assert_eq!(cut("⠋ one two", 20), "⠋ one two");
        assert_eq!(cut("⠋ one two three", 10), "⠋ one two…");
        assert!(cut(&"步".repeat(60), 79).width() <= 79);
    }
}
