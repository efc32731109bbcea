//! A check of every file of a corpus, counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zeropilot_lint::{Report, Settings, Severity, Verdict, check};

/// One finding in a file of the corpus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The first 16 hex digits of the file's SHA-256.
    pub(crate) file: String,
    pub(crate) rule: &'static str,
    pub(crate) key: String,
    pub(crate) severity: Severity,
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Study {
    pub(crate) files: usize,
    pub(crate) rejected: usize,
    pub(crate) with_error: usize,
    pub(crate) with_warning: usize,
    pub(crate) with_no_op: usize,
    /// The same without K26, which says little about a run and occurs in every fourth file.
    pub(crate) with_no_op_beside_printing: usize,
    pub(crate) without_finding: usize,
    /// By rule: how often, and in how many files.
    pub(crate) rules: BTreeMap<&'static str, (usize, usize)>,
    /// Every finding.
    pub(crate) findings: BTreeSet<Finding>,
}

impl Study {
    /// Checks all files of a directory for the newest engine, as a user would who says nothing else.
    pub(crate) fn of(corpus: &Path) -> io::Result<Self> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(corpus)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let mut study = Self::default();
        for path in paths {
            study.count(&std::fs::read(path)?);
        }
        Ok(study)
    }

    fn count(&mut self, bytes: &[u8]) {
        let report = check(bytes, &Settings::default());
        let has = |severity| report.diagnostics.iter().any(|found| found.severity == severity);
        let codes: BTreeSet<&'static str> =
            report.diagnostics.iter().map(|found| found.rule.code).collect();
        self.files += 1;
        self.rejected += usize::from(report.verdict == Verdict::Reject);
        self.with_error += usize::from(has(Severity::Error));
        self.with_warning += usize::from(has(Severity::Warning));
        let idle = no_ops(&report);
        self.with_no_op += usize::from(!idle.is_empty());
        self.with_no_op_beside_printing += usize::from(idle.iter().any(|code| *code != "K26"));
        self.without_finding += usize::from(codes.is_empty());
        for code in codes {
            self.rules.entry(code).or_default().1 += 1;
        }
        let name = name(bytes);
        for found in &report.diagnostics {
            self.rules.entry(found.rule.code).or_default().0 += 1;
            self.findings.insert(Finding {
                file: name.clone(),
                rule: found.rule.code,
                key: found.path.to_string(),
                severity: found.severity,
            });
        }
    }
}

/// The rules about idle keys that found one. What is told more mildly than its rule hangs on something
/// that the file does not show, and does not count.
pub(crate) fn no_ops(report: &Report) -> Vec<&'static str> {
    let all = report.diagnostics.iter().filter(|found| found.severity <= found.rule.severity);
    all.map(|found| found.rule).filter(|rule| rule.is_no_op).map(|rule| rule.code).collect()
}

/// The first 16 hex digits of a file's SHA-256.
fn name(bytes: &[u8]) -> String {
    digest(bytes).chars().take(16).collect()
}

/// The SHA-256 of a file in hex digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut name, byte| {
        // Writing to a string cannot fail.
        let _ = write!(name, "{byte:02x}");
        name
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_once_and_findings_each() {
        let mut study = Study::default();
        study.count(b"{\"train_batch_size\": 8, \"a\": 1, \"b\": 2}");
        study.count(b"{\"train_batch_size\": 8}");
        assert_eq!((study.files, study.with_error, study.with_no_op), (2, 0, 1));
        assert_eq!(study.without_finding, 1);
        assert_eq!(study.rules["K01"], (2, 1));
        assert_eq!(study.findings.len(), 2);
    }

    #[test]
    fn keys_of_a_program_that_holds_a_config_are_not_idle() {
        let mut study = Study::default();
        study
            .count(br#"{"train_batch_size": 8, "a": 1, "b": {"zero_optimization": {"stage": 1}}}"#);
        assert_eq!((study.with_no_op, study.without_finding), (0, 0));
    }

    /// `printf abc | sha256sum` begins with ba7816bf8f01cfea.
    #[test]
    fn files_are_named_by_their_content() {
        assert_eq!(name(b"abc"), "ba7816bf8f01cfea");
    }
}
