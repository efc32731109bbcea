//! What is seen of a run: its output as it is, a line about how it stands on a terminal, and a few words.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use zeropilot_cluster::NvidiaGauge;
use zeropilot_cluster::gauge::Gauge;
use zeropilot_record::{RunEvent, RunInfo};
use zeropilot_run::{Observer, Recorder, Status, Stream, Telemetry, TrainingLength, Unwritten};
use zeropilot_text::Language;
use zeropilot_view::run::{self as words, StatusLine};

use super::notifier::Notifier;
use super::speaker::Speaker;
use super::status_row::StatusRow;

/// Columns of a terminal that does not say.
const COLUMNS: usize = 80;

/// The terminal, and the record.
pub(super) struct Screen {
    recorder: Arc<Recorder>,
    notifier: Notifier,
    language: Language,
    quiet: bool,
    predicted: Option<u64>,
    /// Whether tokens are counted from arguments.
    counts_tokens: bool,
    telemetry: Mutex<Telemetry>,
    /// Whether there is a terminal for the row.
    has_row: bool,
    /// One writer at a time, so that two streams do not cut each other's lines.
    row: Arc<Mutex<StatusRow>>,
    /// Whoever supervises must not wait for a terminal that does not read.
    speaker: Speaker,
    /// When the write began that is under way.
    writing: Mutex<Option<Instant>>,
}

/// A write that takes longer than this is kept waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Says something beside the output, before there is a screen.
pub(super) fn say(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

impl Screen {
    pub(super) fn new(
        recorder: Arc<Recorder>,
        language: Language,
        quiet: bool,
        info: &RunInfo,
        notifier: Notifier,
    ) -> Self {
        let length =
            TrainingLength { total_steps: info.total_steps, tokens_per_step: info.tokens_per_step };
        let gauge = NvidiaGauge::open().ok().map(|gauge| Box::new(gauge) as Box<dyn Gauge>);
        Self {
            recorder,
            notifier,
            language,
            quiet,
            predicted: info.predicted,
            counts_tokens: info.tokens_per_step.is_some(),
            telemetry: Mutex::new(Telemetry::new(gauge, length)),
            has_row: !quiet && std::io::stderr().is_terminal(),
            row: Arc::default(),
            speaker: Speaker::start(),
            writing: Mutex::default(),
        }
    }

    /// Says something beside the output.
    pub(super) fn talk(&self, text: &str) {
        let (row, has_row, text) = (self.row.clone(), self.has_row, format!("zeropilot: {text}"));
        self.speaker.say(move || {
            let Ok(mut row) = row.lock() else { return };
            if has_row {
                row.clear(&mut std::io::stderr());
                row.end_line(&mut std::io::stderr());
            }
            say(&text);
            if has_row {
                row.follow(b"\n", columns(), &mut std::io::stderr());
            }
        });
    }

    fn set_writing(&self, since: Option<Instant>) {
        if let Ok(mut writing) = self.writing.lock() {
            *writing = since;
        }
    }

    /// Waits for messages that are under way.
    pub(super) fn send_rest(&self) {
        self.tell_unsent(&self.notifier.finish());
    }

    fn tell_unsent(&self, failures: &[String]) {
        for why in failures {
            self.talk(&words::unsent(why, self.language));
        }
    }

    /// Says why the record or the copy of its events could not be written, if something new could not be.
    pub(super) fn tell_unwritten(&self) {
        let told = match self.recorder.take_failure() {
            Some(Unwritten::Record(error)) => {
                words::unrecorded(self.recorder.directory(), &error, self.language)
            }
            Some(Unwritten::Copy(error)) => words::events_lost(&error, self.language),
            None => return,
        };
        self.talk(&told);
    }

    /// Takes the row away.
    pub(super) fn finish(&self) {
        let (row, has_row) = (self.row.clone(), self.has_row);
        self.speaker.say(move || {
            if let Ok(mut row) = row.lock()
                && has_row
            {
                row.finish(&mut std::io::stderr());
            }
        });
    }
}

fn columns() -> usize {
    let size = terminal_size::terminal_size_of(std::io::stderr());
    size.map_or(COLUMNS, |(width, _)| usize::from(width.0))
}

impl Observer for Screen {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        let Ok(mut row) = self.row.lock() else { return };
        self.set_writing(Some(Instant::now()));
        if self.has_row {
            row.clear(&mut std::io::stderr());
        }
        // Whoever reads may go away; the run goes on.
        let is_shown = match stream {
            Stream::Out => {
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(bytes).and_then(|()| out.flush());
                out.is_terminal()
            }
            Stream::Err => {
                let _ = std::io::stderr().lock().write_all(bytes);
                true
            }
        };
        if self.has_row {
            let seen = if is_shown { bytes } else { b"" };
            row.follow(seen, columns(), &mut std::io::stderr());
        }
        self.set_writing(None);
    }

    fn is_blocked(&self) -> bool {
        let since = self.writing.lock().ok().and_then(|writing| *writing);
        since.is_some_and(|since| since.elapsed() > PATIENCE)
    }

    fn happened(&self, happening: RunEvent) {
        if !self.quiet
            && let Some(text) = words::happening(&happening, self.language)
        {
            self.talk(&text);
        }
        if let Ok(mut telemetry) = self.telemetry.lock() {
            telemetry.saw(&happening);
        }
        self.notifier.saw(&happening);
        self.recorder.add(happening);
        self.tell_unwritten();
        self.tell_unsent(&self.notifier.failures());
    }

    fn status(&self, status: &Status) {
        let Ok(mut telemetry) = self.telemetry.lock() else { return };
        for measured in telemetry.due(status) {
            self.recorder.add(measured);
        }
        if !self.has_row {
            return;
        }
        let on_gpu = telemetry.largest_on_gpu();
        let line = StatusLine {
            step: status.step,
            total_steps: telemetry.total_steps(status),
            loss: status.loss,
            rate: status.rate,
            tokens_per_second: telemetry.tokens_per_second(status),
            counts_tokens: self.counts_tokens,
            largest: on_gpu.or(status.memory.iter().map(|rank| rank.rss).max()),
            is_gpu: on_gpu.is_some(),
            predicted: self.predicted,
            ranks: status.memory.len(),
            seconds: status.elapsed.as_secs(),
        };
        drop(telemetry);
        let (row, text) = (self.row.clone(), words::status(&line, self.language));
        self.speaker.mention(move || {
            if let Ok(mut row) = row.lock() {
                row.say(text, columns(), &mut std::io::stderr());
            }
        });
    }
}
