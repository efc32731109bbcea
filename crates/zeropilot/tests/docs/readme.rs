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
