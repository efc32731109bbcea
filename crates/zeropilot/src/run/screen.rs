//! What is seen of a run: its output as it is, a line about how it stands on a terminal, and a few words.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex};

use indicatif::{ProgressBar, ProgressStyle};
use zeropilot_cluster::NvidiaGauge;
use zeropilot_cluster::gauge::Gauge;
use zeropilot_record::{RunEvent, RunInfo};
use zeropilot_run::{Observer, Recorder, Status, Stream, Telemetry, TrainingLength};
use zeropilot_text::Language;
use zeropilot_view::run::{self as words, StatusLine};

/// The terminal, and the record.
pub(super) struct Screen {
    recorder: Arc<Recorder>,
    language: Language,
    quiet: bool,
    predicted: Option<u64>,
    /// Whether tokens are counted from arguments.
    counts_tokens: bool,
    telemetry: Mutex<Telemetry>,
    bar: Option<ProgressBar>,
    /// One writer at a time, so that two streams do not cut each other's lines.
    turn: Mutex<()>,
}

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
    ) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        let length =
            TrainingLength { total_steps: info.total_steps, tokens_per_step: info.tokens_per_step };
        let gauge = NvidiaGauge::open().ok().map(|gauge| Box::new(gauge) as Box<dyn Gauge>);
        Self {
            recorder,
            language,
            quiet,
            predicted: info.predicted,
            counts_tokens: info.tokens_per_step.is_some(),
            telemetry: Mutex::new(Telemetry::new(gauge, length)),
            bar,
            turn: Mutex::new(()),
        }
    }

    /// Says something beside the output.
    pub(super) fn talk(&self, text: &str) {
        self.write(|| say(&format!("zeropilot: {text}")));
    }

    /// Takes the line away.
    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn write(&self, write: impl FnOnce()) {
        let _turn = self.turn.lock();
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Observer for Screen {
    fn output(&self, stream: Stream, bytes: &[u8]) {
        // Whoever reads may go away; the run goes on.
        self.write(|| {
            let _ = match stream {
                Stream::Out => {
                    let mut out = std::io::stdout().lock();
                    out.write_all(bytes).and_then(|()| out.flush())
                }
                Stream::Err => std::io::stderr().lock().write_all(bytes),
            };
        });
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
        self.recorder.add(happening);
    }

    fn status(&self, status: &Status) {
        let Ok(mut telemetry) = self.telemetry.lock() else { return };
        for measured in telemetry.due(status) {
            self.recorder.add(measured);
        }
        let Some(bar) = &self.bar else { return };
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
        bar.set_message(words::status(&line, self.language));
        bar.tick();
    }
}
