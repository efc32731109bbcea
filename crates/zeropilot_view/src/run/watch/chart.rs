//! Bars and rows of bars, in characters that every terminal has or in the finer ones of Unicode.

/// Which characters may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    /// Block elements.
    Blocks,
    /// ASCII alone.
    Ascii,
}

impl Glyphs {
    /// What the locale allows: the first variable that is set decides, as POSIX has it.
    pub fn from_locale(variable: impl Fn(&str) -> Option<String>) -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| variable(name).filter(|value| !value.is_empty()));
        let locale = locale.unwrap_or_default().to_ascii_lowercase();
        if locale.contains("utf-8") || locale.contains("utf8") { Self::Blocks } else { Self::Ascii }
    }

    fn steps(self) -> [char; 8] {
        match self {
            Self::Blocks => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
            Self::Ascii => ['_', '.', ',', '-', '=', '+', '*', '#'],
        }
    }
}

/// Values as a row of bars, from the floor, or else the lowest, to the highest.
pub fn sparkline(values: &[f64], floor: Option<f64>, glyphs: Glyphs) -> String {
    let low = values.iter().copied().chain(floor).fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: &f64| {
        let share = if high > low { (value - low) / (high - low) } else { 0.0 };
        glyphs.steps()[((share * 7.0).round() as usize).min(7)]
    };
    values.iter().map(bar).collect()
}

/// A part of a whole as a bar of so many characters, with a line where the mark is.
pub fn bar(part: u64, mark: Option<u64>, whole: u64, width: usize, glyphs: Glyphs) -> String {
    let (full, empty) = match glyphs {
        Glyphs::Blocks => ('█', '░'),
        Glyphs::Ascii => ('#', '.'),
    };
    let at = |value: u64| {
        let share = value as f64 / whole.max(1) as f64;
        ((share * width as f64).round() as usize).min(width)
    };
    let filled = at(part);
    let mark = mark.filter(|_| width > 0).map(|mark| at(mark).min(width - 1));
    let character = |index: usize| match index {
        index if Some(index) == mark => '|',
        index if index < filled => full,
        _ => empty,
    };
    (0..width).map(character).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sparkline_goes_from_the_lowest_to_the_highest() {
        assert_eq!(sparkline(&[1.0, 4.5, 8.0], None, Glyphs::Blocks), "▁▅█");
        assert_eq!(sparkline(&[7.0, 6.0], Some(0.0), Glyphs::Blocks), "█▇");
        assert_eq!(sparkline(&[1.0, 1.0], None, Glyphs::Ascii), "__");
    }

    #[test]
    fn a_bar_is_as_wide_as_asked_and_has_its_mark() {
        assert_eq!(bar(50, Some(75), 100, 8, Glyphs::Ascii), "####..|.");
        assert_eq!(bar(999, Some(100), 100, 4, Glyphs::Blocks), "███|");
        assert_eq!(bar(1, None, 0, 2, Glyphs::Ascii), "##");
        assert_eq!(bar(1, Some(1), 1, 0, Glyphs::Ascii), "");
    }

    #[test]
    fn only_a_locale_of_unicode_gets_blocks() {
        let locale = |value: &'static str| {
            Glyphs::from_locale(move |name| (name == "LANG").then(|| value.to_owned()))
        };
        assert_eq!(locale("en_US.UTF-8"), Glyphs::Blocks);
        assert_eq!(locale("C.utf8"), Glyphs::Blocks);
        assert_eq!(locale("C"), Glyphs::Ascii);
        assert_eq!(Glyphs::from_locale(|_| None), Glyphs::Ascii);
    }
}
