//! The documents, and how a stale one is told or rewritten.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A document with its path from the root.
pub(crate) struct Page {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn read(path: &str) -> Self {
        let text = fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"));
        Self { path: path.to_owned(), text }
    }

    /// Whether its commands are typed where the locale is Chinese.
    pub(crate) fn is_chinese(&self) -> bool {
        self.path.starts_with("docs/zh/")
    }
}

/// Where the book of either language begins.
pub(crate) const BOOKS: [&str; 2] = ["docs", "docs/zh"];

/// The chapters of both books, in their order.
pub(crate) fn chapters() -> Vec<Page> {
    BOOKS.into_iter().flat_map(chapters_of).collect()
}

pub(crate) fn chapters_of(book: &str) -> Vec<Page> {
    let summary = Page::read(&format!("{book}/SUMMARY.md")).text;
    let paths = summary.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    paths.map(|(path, _)| Page::read(&format!("{book}/{path}"))).collect()
}

/// All documents.
pub(crate) fn all() -> Vec<Page> {
    let beside = [
        "README.md",
        "README.zh-CN.md",
        "CONTRIBUTING.md",
        "docs/SUMMARY.md",
        "docs/zh/SUMMARY.md",
        "examples/README.md",
        "examples/README.zh-CN.md",
    ];
    beside.into_iter().map(Page::read).chain(chapters()).collect()
}

/// Every file below a directory, by its path from the root, in order.
pub(crate) fn below(directory: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(root().join(directory)).expect("a directory");
    for entry in entries.map(|entry| entry.expect("an entry")) {
        let name = entry.file_name().into_string().expect("UTF-8");
        let path = format!("{}/{name}", directory.trim_end_matches('/'));
        if entry.file_type().expect("a kind").is_dir() {
            paths.extend(below(&path));
        } else {
            paths.push(path);
        }
    }
    paths.sort();
    paths
}

/// Holds a document against what it should be; `ZEROPILOT_UPDATE_DOCS=1` writes it.
pub(crate) fn fresh(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("ZEROPILOT_UPDATE_DOCS").is_some() {
        fs::create_dir_all(file.parent().expect("a directory")).expect("a writable checkout");
        fs::write(&file, text).expect("a writable checkout");
        return;
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let (mut is, mut should) = (stored.lines(), text.lines());
    let differing = (1..).map(|line| (line, is.next(), should.next()));
    let first = differing
        .take_while(|(_, is, should)| is.or(*should).is_some())
        .find(|(_, is, should)| is != should);
    assert!(
        first.is_none() && stored == text,
        "{path} is stale, first at {first:?}; run with ZEROPILOT_UPDATE_DOCS=1"
    );
}

/// A page whose block between `<!-- name: … -->` and `<!-- end -->` is what a test writes.
pub(crate) fn filled(page: &Page, name: &str, block: &str) -> String {
    let start = format!("<!-- {name}: ");
    let (before, rest) =
        page.text.split_once(&start).unwrap_or_else(|| panic!("{}: {name}", page.path));
    let (remark, rest) = rest.split_once("-->\n").expect("the end of the remark");
    let (_, after) = rest.split_once("<!-- end -->").expect("the end of the block");
    format!("{before}{start}{remark}-->\n\n{block}\n<!-- end -->{after}")
}
