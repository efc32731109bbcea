//! The front door: short, found by the words that people type, with numbers of the generated pages.

use crate::pages::Page;

const LINES: usize = 180;
const WORDS: [&str; 7] = [
    "gradient accumulation",
    "CUDA out of memory",
    "OOM",
    "ZeRO-3",
    "LoRA",
    "offload",
    "DeepSpeed config",
];

pub(crate) fn faults(page: &Page) -> Vec<String> {
    let lines = page.text.lines().count();
    let long = (lines > LINES).then(|| format!("{}: {lines} lines", page.path));
    // A line may end within a phrase.
    let text = page.text.split_whitespace().collect::<Vec<_>>().join(" ");
    let missing = WORDS.iter().filter(|word| !text.contains(*word));
    long.into_iter().chain(missing.map(|word| format!("{}: no {word}", page.path))).collect()
}

/// The cells of a row of the generated page.
fn row<'a>(accuracy: &'a str, part: &str, name: &str) -> Vec<&'a str> {
    let (_, rest) = accuracy.split_once(part).unwrap_or_else(|| panic!("{part}"));
    let row = rest.lines().find(|line| line.starts_with(&format!("| {name} |")));
    row.unwrap_or_else(|| panic!("{part}: {name}")).split('|').map(str::trim).collect()
}

/// Numbers of published runs that the table of the README should have.
pub(crate) fn missing_numbers(page: &Page, accuracy: &str) -> Vec<String> {
    let all = "all that can be asked";
    let (memory, time) = (row(accuracy, "# Accuracy\n", all), row(accuracy, "# Throughput\n", all));
    let (own, nodes) = (
        row(accuracy, "# Throughput\n", "DeepSpeed"),
        row(accuracy, "# Throughput\n", "more than one node"),
    );
    let ran = row(accuracy, "## Does it fit?", "ran");
    let short = row(accuracy, "## Does it fit?", "ran out of memory");
    // Columns: name, count, median absolute error, median error, within 15 %, within bounds.
    let expected = [
        memory[2], memory[3], memory[5], memory[6], time[2], time[3], own[3], nodes[3], ran[2],
        short[3],
    ];
    let table: Vec<&str> = page.text.lines().filter(|line| line.starts_with("| ")).collect();
    let table = table.join("\n");
    let plain = expected.iter().map(|number| number.replace(" %", "%"));
    plain
        .filter(|number| !table.contains(number))
        .map(|number| format!("{}: {number}", page.path))
        .collect()
}
