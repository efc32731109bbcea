//! Numbers of published runs that several documents quote: all are those of the generated page.

use crate::pages::Page;

/// The cells of a row of the generated page.
fn row<'a>(accuracy: &'a str, part: &str, name: &str) -> Vec<&'a str> {
    let (_, rest) = accuracy.split_once(part).unwrap_or_else(|| panic!("{part}"));
    let row = rest.lines().find(|line| line.starts_with(&format!("| {name} |")));
    row.unwrap_or_else(|| panic!("{part}: {name}")).split('|').map(str::trim).collect()
}

/// What a document quotes: parts of the generated page, their rows and columns.
///
/// Columns are 2 count, 3 median absolute error, 4 median error, 5 within 15 %, 6 within bounds, 7 worst or pairs.
type Quotes = &'static [(&'static str, &'static str, &'static [usize])];

const MEMORY: &str = "# Accuracy\n";
const SEVERAL: &str = "## Jobs with several models";
const FIT: &str = "## Does it fit?";
const TIME: &str = "# Throughput\n";
const ALL: &str = "all compared runs";

const README: Quotes = &[
    (MEMORY, ALL, &[2, 3, 5, 6]),
    (TIME, ALL, &[2, 3]),
    (TIME, "DeepSpeed", &[3]),
    (TIME, "more than one node", &[3]),
    (FIT, "ran", &[2]),
    (FIT, "ran out of memory", &[3]),
];
const MEMORY_PAGE: Quotes = &[
    (MEMORY, ALL, &[2, 3, 4, 5]),
    (MEMORY, "without runs whose reserved memory varies", &[3]),
    (SEVERAL, "all", &[2, 3, 7]),
];
const TIME_PAGE: Quotes = &[
    (TIME, ALL, &[2, 3, 4, 7]),
    (TIME, "dense pre-training", &[2, 3, 4, 7]),
    (TIME, "DeepSpeed", &[2, 3, 4, 7]),
    (TIME, "more than one node", &[2, 3, 4, 7]),
    (TIME, "optimizer on the host", &[2, 3, 4, 7]),
];

/// Documents with what they quote.
pub(crate) const QUOTES: [(&str, Quotes); 6] = [
    ("README.md", README),
    ("README.zh-CN.md", README),
    ("docs/memory.md", MEMORY_PAGE),
    ("docs/zh/memory.md", MEMORY_PAGE),
    ("docs/time.md", TIME_PAGE),
    ("docs/zh/time.md", TIME_PAGE),
];

/// Numbers that a document should have and does not.
pub(crate) fn missing(page: &Page, quotes: Quotes, accuracy: &str) -> Vec<String> {
    // A README has small numbers everywhere.
    let is_read = |line: &&str| !page.path.starts_with("README") || line.starts_with("| ");
    let text = page.text.lines().filter(is_read).collect::<Vec<_>>().join(" ");
    let text = text.replace(" %", "%").replace('\u{2212}', "-");
    let rows = quotes.iter().map(|(part, name, columns)| (row(accuracy, part, name), *columns));
    let cells = rows.flat_map(|(row, columns)| columns.iter().map(move |at| row[*at]));
    let numbers = cells.flat_map(|cell| {
        // "96 % of 720" is in another order in Chinese.
        cell.split(" of ").map(|number| number.replace(" %", "%")).collect::<Vec<_>>()
    });
    numbers
        .filter(|number| !has(&text, number))
        .map(|number| format!("{}: {number}", page.path))
        .collect()
}

/// Whether a number stands there, not as a part of a longer one.
fn has(text: &str, number: &str) -> bool {
    let is_digit = |letter: Option<char>| letter.is_some_and(|it| it.is_ascii_digit() || it == '.');
    text.match_indices(number).any(|(at, _)| {
        let after = text[at + number.len()..].chars().next();
        !is_digit(text[..at].chars().next_back())
            && (number.ends_with('%') || !after.is_some_and(|it| it.is_ascii_digit()))
    })
}
