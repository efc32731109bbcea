//! The output of a run: handed on as it is, and read line by line on the way.
//!
//! Nothing here grows with the output: of each line a limited part is looked at, and only the last lines are kept.

mod lines;
mod tail;
mod traceback;

use std::io::Read;

use self::lines::Lines;
pub(crate) use self::lines::Told;
use self::tail::Tail;

const BUFFER: usize = 1 << 16;

/// A stream of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Reads a stream to its end. `pass` gets every byte, `tell` what lines tell; the last lines come back.
pub(crate) fn follow(
    mut source: impl Read,
    mut pass: impl FnMut(&[u8]),
    mut tell: impl FnMut(Told),
) -> Vec<String> {
    let mut buffer = vec![0; BUFFER];
    let (mut lines, mut tail) = (Lines::default(), Tail::new());
    loop {
        match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => {
                pass(&buffer[..count]);
                lines.feed(&buffer[..count], &mut tell);
                tail.feed(&buffer[..count]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    lines.end(&mut tell);
    tail.lines()
}
