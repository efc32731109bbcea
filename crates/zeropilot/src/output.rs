//! The two streams: results on standard output, talk on standard error.

use std::io::{self, BufWriter, StderrLock, Write};
use std::sync::OnceLock;

/// Why results could not be written. Verbs only hand results over; whether all arrived is asked once, when they are done.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Why some results did not arrive, unless their reader went away.
pub(crate) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// Remembers that results did not arrive.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = LOST.set(error);
    }
}

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
        if !self.is_closed {
            let written = self.results.write_all(text.as_bytes());
            self.settle(written);
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
        if !self.is_closed {
            let written = self.results.flush();
            self.settle(written);
        }
    }

    fn settle(&mut self, written: io::Result<()>) {
        self.is_closed = written.is_err();
        note(written);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        self.flush();
    }
}
