//! How far a long check has come, shown on a terminal only.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use zeropilot_text::Language;
use zeropilot_view::talk;

/// Shorter waits need no explanation.
const PATIENCE: Duration = Duration::from_secs(1);

/// Something that turns while nothing can be counted, if there is a terminal to show it on.
pub(crate) fn turning(quiet: bool, words: &'static str) -> Option<ProgressBar> {
    let is_wanted = !quiet && std::io::stderr().is_terminal();
    is_wanted.then(|| {
        let bar = ProgressBar::new_spinner().with_message(words);
        bar.enable_steady_tick(PATIENCE / 8);
        bar
    })
}

/// A counter that appears when a check takes long.
pub(crate) struct Progress {
    started: Instant,
    is_wanted: bool,
    bar: Option<ProgressBar>,
    language: Language,
}

impl Progress {
    /// A counter, if there is a terminal to show it on and it would not be drawn into the results.
    pub(crate) fn new(quiet: bool, language: Language) -> Self {
        let is_wanted =
            !quiet && std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        Self { started: Instant::now(), is_wanted, bar: None, language }
    }

    /// Shows that so many files are done.
    pub(crate) fn done(&mut self, files: usize) {
        if !self.is_wanted || self.started.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        bar.set_message(talk::progress(files, self.language));
        bar.tick();
    }

    /// Takes the counter away.
    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
