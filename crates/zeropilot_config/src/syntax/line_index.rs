//! Byte offsets to lines and columns.

/// A place as editors show it, both counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineColumn {
    /// The line.
    pub line: usize,
    /// The column, in Unicode characters.
    pub column: usize,
}

/// The line starts and wide characters of a text, for looking up many offsets.
///
/// Lines end at `\n`, `\r\n` and lone `\r`, as they do for the readers. A byte-order mark takes no
/// column, since no editor shows it one.
#[derive(Debug, Clone)]
pub struct LineIndex {
    len: usize,
    starts: Vec<usize>,
    /// For each character that does not count one column per byte: the offset after it, and the
    /// bytes without a column up to there.
    surplus: Vec<(usize, usize)>,
}

impl LineIndex {
    /// Reads through `text` once.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        let mut surplus = Vec::new();
        let mut total = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let ends_line =
                byte == b'\n' || byte == b'\r' && bytes.get(at + 1).is_none_or(|&b| b != b'\n');
            if ends_line {
                starts.push(at + 1);
            } else if byte >= 0xC0 {
                let width = match byte {
                    0xF0.. => 4,
                    0xE0.. => 3,
                    _ => 2,
                };
                let is_mark = at == 0 && text.starts_with('\u{feff}');
                total += if is_mark { width } else { width - 1 };
                surplus.push((at + width, total));
            }
        }
        Self { len: bytes.len(), starts, surplus }
    }

    /// The place of `offset`; an offset past the end is taken as the end.
    pub fn line_column(&self, offset: usize) -> LineColumn {
        let offset = offset.min(self.len);
        let line = self.starts.partition_point(|&start| start <= offset);
        let start = self.starts[line - 1];
        let surplus = self.surplus_before(offset) - self.surplus_before(start);
        LineColumn { line, column: offset - start - surplus + 1 }
    }

    fn surplus_before(&self, offset: usize) -> usize {
        let count = self.surplus.partition_point(|&(after, _)| after <= offset);
        count.checked_sub(1).map_or(0, |last| self.surplus[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let text = "\u{feff}é: 1\r\nzwölf: 😀x\rb\n";
        let index = LineIndex::new(text);
        let place = |needle: &str| {
            let LineColumn { line, column } = index.line_column(text.find(needle).unwrap());
            (line, column)
        };
        assert_eq!(place("é"), (1, 1));
        assert_eq!(place("1"), (1, 4));
        assert_eq!(place("zw"), (2, 1));
        assert_eq!(place("😀"), (2, 8));
        assert_eq!(place("x"), (2, 9));
        assert_eq!(place("b"), (3, 1));
        assert_eq!(index.line_column(usize::MAX), LineColumn { line: 4, column: 1 });
    }

    #[test]
    fn an_empty_text_has_one_place() {
        assert_eq!(LineIndex::new("").line_column(0), LineColumn { line: 1, column: 1 });
    }
}
