//! Byte offsets to the protocol's positions and back: lines from zero, columns in UTF-16 units.

use gen_lsp_types::{Position, Range};
use zeropilot_config::syntax::Span;

/// The line starts of a text.
///
/// Lines end at `\n`, `\r\n` and lone `\r`, as the protocol says.
#[derive(Debug, Clone)]
pub(crate) struct Positions {
    starts: Vec<usize>,
}

impl Positions {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends_line = |at: usize| {
            bytes[at] == b'\n' || bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n')
        };
        let after = (0..bytes.len()).filter(|&at| ends_line(at)).map(|at| at + 1);
        Self { starts: std::iter::once(0).chain(after).collect() }
    }

    /// The position of an offset; what lies past the end, or inside a character, is moved to the next place before it.
    pub(crate) fn position(&self, text: &str, offset: usize) -> Position {
        let mut offset = offset.min(text.len());
        while !text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|&start| start <= offset) - 1;
        let column = text[self.starts[line]..offset].encode_utf16().count();
        Position { line: whole(line), character: whole(column) }
    }

    /// The offset of a position. A column past the end of its line is the end of the line, a line past the end of the
    /// text is the end of the text, the middle of a character is its start.
    pub(crate) fn offset(&self, text: &str, position: Position) -> usize {
        let line = position.line as usize;
        let Some(&start) = self.starts.get(line) else { return text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let content = text[start..end].trim_end_matches(['\n', '\r']);
        let mut left = position.character as usize;
        for (at, character) in content.char_indices() {
            if left < character.len_utf16() {
                return start + at;
            }
            left -= character.len_utf16();
        }
        start + content.len()
    }

    pub(crate) fn range(&self, text: &str, span: Span) -> Range {
        Range { start: self.position(text, span.start), end: self.position(text, span.end) }
    }
}

fn whole(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_count_utf_16_units() {
        let text = "{\r\n \"名\": \"😀x\",\r\"b\": 1}";
        let positions = Positions::new(text);
        for (needle, place) in [("名", (1, 2)), ("😀", (1, 7)), ("x", (1, 9)), ("b", (2, 1))] {
            let offset = text.find(needle).expect("a needle");
            let place = position(place.0, place.1);
            assert_eq!(positions.position(text, offset), place, "{needle}");
            assert_eq!(positions.offset(text, place), offset, "{needle}");
        }
        // The middle of a pair of surrogates, the end of a line, the end of the text.
        assert_eq!(positions.offset(text, position(1, 8)), text.find('😀').expect("a needle"));
        assert_eq!(positions.offset(text, position(0, 99)), 1);
        assert_eq!(positions.offset(text, position(99, 0)), text.len());
    }

    #[test]
    fn every_boundary_comes_back() {
        let text = "a\n\n\r\r\né😀\u{feff}\n";
        let positions = Positions::new(text);
        for offset in (0..=text.len()).filter(|&offset| text.is_char_boundary(offset)) {
            // Between \r and \n there is no place of its own.
            if text[..offset].ends_with('\r') && text[offset..].starts_with('\n') {
                continue;
            }
            assert_eq!(positions.offset(text, positions.position(text, offset)), offset);
        }
    }
}
