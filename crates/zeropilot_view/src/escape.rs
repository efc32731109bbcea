//! Text from files and paths, made harmless for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// `text` with everything escaped that a terminal could act upon: control characters, line breaks
/// among them, and marks that turn the direction of writing.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_harmful(character) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "{}", character.escape_default());
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_orders() {
        assert_eq!(escaped("配置/a b.json"), "配置/a b.json");
        assert_eq!(escaped("\u{1b}[31mred\u{9b}0m"), "\\u{1b}[31mred\\u{9b}0m");
        assert_eq!(escaped("a\nb\u{202e}c"), "a\\nb\\u{202e}c");
    }
}
