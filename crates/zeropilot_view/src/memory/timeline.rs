//! The memory of a GPU over one step, drawn with characters.

use zeropilot_step::memory::Stretch;
use zeropilot_step::zero::Place;
use zeropilot_text::Language;
use zeropilot_units::Bytes;

use super::phase::short;
use crate::Layout;

const ROWS: usize = 12;
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One column for each stretch; the axis on the left is in bytes.
pub fn timeline(stretches: &[Stretch], capacity: Option<Bytes>, layout: &Layout) -> String {
    let heights: Vec<u64> = stretches.iter().map(|s| s.alive.at(Place::Device).0).collect();
    let most = heights.iter().copied().chain(capacity.map(|bytes| bytes.0)).max().unwrap_or(1);
    let mut text = String::new();
    for row in (0..ROWS).rev() {
        let top = Bytes(most / ROWS as u64 * (row as u64 + 1));
        let limit = capacity.is_some_and(|bytes| row_of(bytes.0, most) == row);
        let label = if row % 3 == 2 { top.to_string() } else { String::new() };
        text.push_str(&format!("{label:>9} ┤"));
        let line: String = heights
            .iter()
            .map(|&height| {
                let block = block(height, most, row);
                if limit && block == ' ' { '╌' } else { block }
            })
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str(&format!("{:>9} └{}\n", "0 B", "─".repeat(heights.len())));
    text.push_str(&format!("{:>11}{}\n", "", phases(stretches, layout.language)));
    text
}

fn row_of(height: u64, most: u64) -> usize {
    let row = u128::from(height) * ROWS as u128 / u128::from(most.max(1));
    usize::try_from(row).unwrap_or(ROWS).min(ROWS - 1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index below nine")]
fn block(height: u64, most: u64, row: usize) -> char {
    let filled = height as f64 / most.max(1) as f64 * ROWS as f64 - row as f64;
    EIGHTHS[(filled.clamp(0.0, 1.0) * 8.0).round() as usize]
}

/// The names of the phases under their beginnings.
fn phases(stretches: &[Stretch], language: Language) -> String {
    let mut line = String::new();
    let mut columns = 0;
    let mut before = None;
    for (place, stretch) in stretches.iter().enumerate() {
        if before != Some(stretch.phase) {
            before = Some(stretch.phase);
            let word = short(stretch.phase).get(language);
            // Short phases push the words of later ones on.
            let place = if columns == 0 { place } else { place.max(columns + 1) };
            line.push_str(&" ".repeat(place - columns));
            line.push_str(word);
            columns = place + unicode_width::UnicodeWidthStr::width(word);
        }
    }
    line
}
