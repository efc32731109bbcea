//! What Python's `str` counts as white space and as a decimal digit.

/// Code points of the zeros of every decimal digit range in Unicode 14, the version in Python 3.11.
/// The nine other digits follow each zero.
const ZEROS: [u32; 66] = [
    0x30, 0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66,
    0xDE6, 0xE50, 0xED0, 0xF20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90,
    0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0xFF10,
    0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450, 0x114D0, 0x11650,
    0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x16A60, 0x16AC0, 0x16B50,
    0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140, 0x1E2F0, 0x1E950, 0x1FBF0,
];

/// The ASCII digit of the same value, for any character `str.isdecimal()` accepts.
pub(crate) fn ascii_digit(character: char) -> Option<char> {
    if character.is_ascii() {
        return character.is_ascii_digit().then_some(character);
    }
    let code = u32::from(character);
    let zero = ZEROS[ZEROS.partition_point(|&zero| zero <= code).checked_sub(1)?];
    char::from_digit(code - zero, 10)
}

/// Whether `str.strip()` removes it. Unicode's own property leaves out the four separators that
/// Python counts because of their bidirectional class.
pub(crate) fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_digits_of_every_script_have_their_value() {
        let all: Vec<char> = ('\0'..=char::MAX).filter(|&c| ascii_digit(c).is_some()).collect();
        assert_eq!(all.len(), 660);
        assert_eq!(ascii_digit('٣'), Some('3'));
        assert_eq!(ascii_digit('𝟿'), Some('9'));
        assert_eq!(ascii_digit('²'), None);
        assert_eq!(ascii_digit('Ⅷ'), None);
    }

    #[test]
    fn white_space_is_pythons() {
        let count = ('\0'..=char::MAX).filter(|&c| is_space(c)).count();
        assert_eq!(count, 29);
        assert!(is_space('\u{1c}') && is_space('\u{85}') && is_space('\u{a0}'));
        assert!(!is_space('\u{200b}') && !is_space('\u{feff}'));
    }
}
