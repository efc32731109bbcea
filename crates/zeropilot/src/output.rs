//! The two streams: results on standard output, talk on standard error.

use std::io::{self, BufWriter, StderrLock, Write};

/// Where results go. A reader that goes away is no error: there is nobody left to tell.
pub(crate) struct Output {
    results: Box<dyn Write>,
    talk: StderrLock<'static>,
    is_closed: bool,
}

impl Output {
    /// Both streams of this process.
    pub(crate) fn new(color: bool) -> Self {
        let stdout = io::stdout().lock();
        let results: Box<dyn Write> = if color {
            Box::new(BufWriter::new(anstream::AutoStream::always(stdout)))
        } else {
            Box::new(BufWriter::with_capacity(1 << 16, stdout))
        };
        Self { results, talk: io::stderr().lock(), is_closed: false }
    }

    /// Writes a piece of the results.
    pub(crate) fn result(&mut self, text: &str) {
        if !self.is_closed && self.results.write_all(text.as_bytes()).is_err() {
            self.is_closed = true;
        }
    }

    /// Says something beside the results.
    pub(crate) fn say(&mut self, line: &str) {
        // The order on a terminal is the order of events.
        self.flush();
        let _ = writeln!(self.talk, "{line}");
    }

    /// Whether nobody reads the results any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self) {
        if !self.is_closed && self.results.flush().is_err() {
            self.is_closed = true;
        }
    }
}
