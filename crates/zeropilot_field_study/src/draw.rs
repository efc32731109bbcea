//! Which findings to read next: rules of which few were read come first, and chance, not the reader,
//! chooses among the findings of a rule.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::labels::Label;
use crate::study::Finding;

/// `count` findings that nobody read, drawn with a seed.
pub(crate) fn draw<'a>(
    findings: impl Iterator<Item = &'a Finding>,
    labels: &[Label],
    count: usize,
    seed: &str,
) -> Vec<&'a Finding> {
    let mut read: BTreeMap<&str, usize> = BTreeMap::new();
    for label in labels {
        *read.entry(&label.rule).or_default() += 1;
    }
    let mut unread: BTreeMap<&str, Vec<&Finding>> = BTreeMap::new();
    for finding in findings.filter(|finding| !labels.iter().any(|label| label.is_about(finding))) {
        unread.entry(finding.rule).or_default().push(finding);
    }
    for of_rule in unread.values_mut() {
        of_rule.sort_by_key(|finding| std::cmp::Reverse(lot(finding, seed)));
    }
    let mut drawn = Vec::new();
    while drawn.len() < count {
        let open = unread.iter().filter(|(_, findings)| !findings.is_empty());
        let rarest = open.map(|(rule, _)| *rule).min_by_key(|rule| read.get(rule).copied());
        let next = rarest.and_then(|rule| unread.get_mut(rule)?.pop());
        let Some(finding) = next else { break };
        *read.entry(finding.rule).or_default() += 1;
        drawn.push(finding);
    }
    drawn
}

fn lot(finding: &Finding, seed: &str) -> [u8; 32] {
    let Finding { file, rule, key, .. } = finding;
    Sha256::digest(format!("{seed} {file} {rule} {key}")).into()
}

#[cfg(test)]
mod tests {
    use zeropilot_lint::Severity;

    use super::*;
    use crate::labels::Verdict;

    fn finding(rule: &'static str, file: &str) -> Finding {
        let (file, key) = (file.to_owned(), "k".to_owned());
        Finding { file, rule, key, severity: Severity::Note }
    }

    #[test]
    fn rules_with_few_readings_come_first_and_nothing_is_drawn_twice() {
        let findings =
            [finding("A01", "1"), finding("A01", "2"), finding("B01", "1"), finding("B01", "2")];
        let label = Label {
            file: "1".to_owned(),
            rule: "A01".to_owned(),
            key: "k".to_owned(),
            verdict: Verdict::True,
            reason: "seen".to_owned(),
        };
        let drawn = draw(findings.iter(), &[label], 9, "7");
        let rules: Vec<_> = drawn.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, ["B01", "A01", "B01"]);
        assert_eq!(drawn[1].file, "2");
    }
}
