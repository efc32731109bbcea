//! The page that both samples of jobs are written into, and shares in its words.

/// Where it is.
pub(crate) const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/job-study.md");

/// How many of a hundred.
pub(crate) fn percent(part: usize, all: usize) -> f64 {
    100.0 * part as f64 / all.max(1) as f64
}
