//! Files and directories of the checkout that documents name in code spans.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser};

use crate::pages::{Page, below, root};

/// What a path of the checkout begins with.
const TOPS: [&str; 11] = [
    ".ci/",
    ".github/",
    "benches/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "knowledge/",
    "oracle/",
    "python/",
    "web/",
];
/// What is built.
const BUILT: [&str; 1] = ["web/dist"];

/// The paths that a page names and nobody finds.
pub(crate) fn missing(page: &Page) -> Vec<String> {
    let spans =
        Parser::new_ext(&page.text, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Code(text) => Some(text),
            _ => None,
        });
    spans
        .filter(|path| TOPS.iter().any(|top| path.starts_with(top)) && !path.contains(' '))
        .filter(|path| !BUILT.contains(&path.as_ref()) && !exists(path))
        .map(|path| format!("{}: {path}", page.path))
        .collect()
}

/// `<version>` and `*` stand for any name.
fn exists(path: &str) -> bool {
    let Some(start) = path.find(['<', '*']) else { return root().join(path).exists() };
    let end = path.find('>').map_or(start + 1, |end| end + 1);
    let (before, after) = (&path[..start], &path[end..]);
    let directory = Path::new(before).parent().and_then(Path::to_str).unwrap_or_default();
    root().join(directory).is_dir()
        && below(directory).iter().any(|file| file.starts_with(before) && file.contains(after))
}
