//! The findings that were read by hand.

use serde::Deserialize;

use crate::study::Finding;

/// What the reader decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    True,
    False,
    Open,
}

/// A finding that was read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Label {
    pub(crate) file: String,
    pub(crate) rule: String,
    pub(crate) key: String,
    pub(crate) verdict: Verdict,
    pub(crate) reason: String,
}

impl Label {
    /// Whether this is the finding that was read.
    pub(crate) fn is_about(&self, finding: &Finding) -> bool {
        let Finding { file, rule, key, .. } = finding;
        (&self.file, self.rule.as_str(), &self.key) == (file, rule, key)
    }
}

/// All of them.
pub(crate) fn labels() -> Vec<Label> {
    let text = include_str!("../../../knowledge/findings/labels.jsonl");
    // The file is part of the program and a test reads it.
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn at_least_150_findings_were_read_each_once() {
        let labels = labels();
        assert!(labels.len() >= 150, "{}", labels.len());
        let distinct: BTreeSet<_> =
            labels.iter().map(|label| (&label.file, &label.rule, &label.key)).collect();
        assert_eq!(distinct.len(), labels.len());
        for label in &labels {
            assert!(zeropilot_lint::rule(&label.rule).is_some(), "{}", label.rule);
            assert!(!label.reason.is_empty() && label.file.len() == 16, "{label:?}");
        }
    }
}
