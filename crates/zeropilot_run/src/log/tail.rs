//! The last lines of a stream. They are cut out when somebody asks, as most of a long log is never asked for.

/// The lines that are kept.
const KEPT: usize = 400;
/// The longest part of a line that is kept.
const KEPT_LENGTH: usize = 2000;
/// Bytes among which they are looked for.
const BYTES: usize = 1 << 19;

pub(super) struct Tail(Vec<u8>);

impl Tail {
    pub(super) fn new() -> Self {
        // All at once: growing bit by bit would leave as much again behind.
        Self(Vec::with_capacity(2 * BYTES))
    }

    pub(super) fn feed(&mut self, bytes: &[u8]) {
        // Moved only when twice as much is there, so that each byte is copied twice at most.
        if self.0.len() + bytes.len() > 2 * BYTES {
            self.0.drain(..self.0.len().saturating_sub(BYTES));
        }
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let lines = self.0.split(|byte| matches!(byte, b'\n' | b'\r')).rev();
        let lines = lines.filter(|line| !line.is_empty()).take(KEPT);
        let text = |line: &[u8]| {
            String::from_utf8_lossy(&line[..line.len().min(KEPT_LENGTH)]).into_owned()
        };
        let mut lines: Vec<String> = lines.map(text).collect();
        lines.reverse();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_does_not_grow_with_lines_or_their_length() {
        let text = format!("{}\n", "x".repeat(100_000)).repeat(50) + &"y\n".repeat(1000) + "z";
        let mut tail = Tail::new();
        for bytes in text.as_bytes().chunks(4096) {
            tail.feed(bytes);
            assert!(tail.0.len() <= 2 * BYTES);
        }
        let last = tail.lines();
        assert_eq!((last.len(), last.last().map(String::as_str)), (KEPT, Some("z")));
        let mut long = Tail::new();
        long.feed(&b"x".repeat(5000));
        assert_eq!(long.lines()[0].len(), KEPT_LENGTH);
    }
}
