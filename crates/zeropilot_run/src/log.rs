//! The output of a run: handed on as it is, and read line by line on the way.
//!
//! Nothing here grows with the output: of each line a limited part is looked at, and only the last lines are kept.

mod lines;
mod tail;
mod traceback;

use std::io::Read;
use std::sync::{Arc, Mutex};

use self::lines::Lines;
pub(crate) use self::lines::Told;
use self::tail::Tail;
pub(crate) use self::traceback::OF_WORKER;

const BUFFER: usize = 1 << 16;

/// A stream of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// The last lines of a stream, for whoever asks while it is read.
#[derive(Clone)]
pub(crate) struct LastLines(Arc<Mutex<Tail>>);

impl LastLines {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Tail::new())))
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().map(|tail| tail.lines()).unwrap_or_default()
    }
}

/// Reads a stream to its end. `pass` gets every byte, `tell` what lines tell; the last lines are kept in `tail`.
pub(crate) fn follow(
    mut source: impl Read,
    mut pass: impl FnMut(&[u8]),
    mut tell: impl FnMut(Told),
    tail: &LastLines,
) {
    let mut buffer = vec![0; BUFFER];
    let mut lines = Lines::default();
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                if let Ok(mut tail) = tail.0.lock() {
                    tail.feed(&buffer[..count]);
                }
                pass(&buffer[..count]);
                lines.feed(&buffer[..count], &mut tell);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lines.end(&mut tell);
}
