//! Bars of block characters, an eighth of a column fine.

const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// A bar of `part` in `whole`, `width` columns wide, padded with spaces.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few columns")]
pub(crate) fn bar(part: u64, whole: u64, width: usize) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    // Something is never nothing.
    let eighths = if part > 0 { eighths.max(1) } else { 0 };
    let mut bar: String = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        bar.push(EIGHTHS[eighths % 8]);
    }
    let used = eighths.div_ceil(8);
    bar.extend(std::iter::repeat_n(' ', width.saturating_sub(used)));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_fill_their_width_and_never_vanish() {
        assert_eq!(bar(1, 2, 4), "██  ");
        assert_eq!(bar(1, 1, 4), "████");
        assert_eq!(bar(1, 1_000_000, 4), "▏   ");
        assert_eq!(bar(0, 5, 2), "  ");
        assert_eq!(bar(7, 0, 2), "▏ ");
    }
}
