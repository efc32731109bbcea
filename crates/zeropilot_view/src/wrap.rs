//! Breaking sentences into lines, also where the script has no spaces.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a line has however narrow the terminal is.
const LEAST: usize = 20;
/// Punctuation that does not begin a line.
const NOT_FIRST: &str = "，。；：、！？）》」』”’…,.;:!?)]}";
/// Punctuation that does not end one.
const NOT_LAST: &str = "（《「『“‘([{`\"";

/// `text` in lines of at most `width` columns; a word that is longer has a line of its own.
pub(crate) fn wrap(text: &str, width: usize) -> String {
    let mut wrapped = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for piece in pieces(text) {
        let columns = piece.trim_end().width();
        if column > 0 && column + columns > width {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            column = 0;
        }
        wrapped.push_str(piece);
        column += piece.width();
    }
    wrapped
}

/// Every line of a text in lines of at most `width` columns; what follows the first is indented below it.
pub(crate) fn fold(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        if content.width() <= width {
            folded.push_str(line);
            continue;
        }
        let indent = content.len() - content.trim_start_matches(' ').len();
        let below = indent + 2;
        let wrapped = wrap(&content[indent..], width.saturating_sub(below).max(LEAST));
        folded.push_str(&content[..indent]);
        folded.push_str(&wrapped.replace('\n', &format!("\n{}", " ".repeat(below))));
        folded.push_str(&line[content.len()..]);
    }
    folded
}

/// The parts between which a line may break, each with the space that follows it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .zip(rest.chars().skip(1))
            .find(|&((_, before), after)| may_break(before, after))
            .map_or(rest.len(), |((at, before), _)| at + before.len_utf8());
        let (piece, tail) = rest.split_at(end);
        rest = tail;
        (!piece.is_empty()).then_some(piece)
    })
}

fn may_break(before: char, after: char) -> bool {
    let is_wide = |character: char| character.width() == Some(2);
    if NOT_FIRST.contains(after) || NOT_LAST.contains(before) || after == ' ' {
        return false;
    }
    before == ' ' || is_wide(before) || is_wide(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded_below_their_own_beginning() {
        let text = "head\n  one two three four five six\nlast\n";
        assert_eq!(fold(text, Some(24)), "head\n  one two three four\n    five six\nlast\n");
        assert_eq!(fold(text, None), text);
    }

    #[test]
    fn words_stay_whole_and_chinese_breaks_anywhere_but_before_punctuation() {
        assert_eq!(wrap("one two three", 8), "one two\nthree");
        assert_eq!(wrap("incomprehensible x", 5), "incomprehensible\nx");
        assert_eq!(wrap("进程数必须能整除，否则拒绝", 12), "进程数必须能\n整除，否则拒\n绝");
        assert_eq!(wrap("写成对象，删掉", 8), "写成对\n象，删掉");
        assert_eq!(wrap("把 `stage` 设为 1", 10), "把 `stage`\n设为 1");
    }
}
