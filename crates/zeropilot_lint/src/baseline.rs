//! Findings that a project has settled with for now: written once, and not told by the checks that follow.
//!
//! A finding is known by its rule, its file and its key, never by its line, so that it stays known while the
//! file around it changes. Where it is about no key, the text of its line stands for one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::diagnostic::Diagnostic;

/// The shape of the file.
const VERSION: u64 = 1;

/// A line is cut after this many characters.
const LONGEST_CAUSE: usize = 160;

/// What a finding is known by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cause {
    /// The file, from the directory of the baseline.
    pub file: String,
    /// The rule's code.
    pub rule: String,
    /// The key.
    pub key: String,
    /// The text of its line, where it is about no key.
    pub line: String,
}

impl Cause {
    fn of(found: &Diagnostic, file: &str, text: &str) -> Self {
        let key = found.path.to_string();
        let line = if key.is_empty() { line_at(text, found.span.start) } else { String::new() };
        Self { file: file.to_owned(), rule: found.rule.code.to_owned(), key, line }
    }
}

/// The line at a place, without its indentation.
fn line_at(text: &str, place: usize) -> String {
    let place = (0..=place.min(text.len())).rev().find(|place| text.is_char_boundary(*place));
    let (before, after) = text.split_at(place.unwrap_or(0));
    let start = before.rsplit('\n').next().unwrap_or("");
    let end = after.split('\n').next().unwrap_or("");
    format!("{start}{end}").trim().chars().take(LONGEST_CAUSE).collect()
}

/// Findings with how often each occurs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Baseline(BTreeMap<Cause, usize>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u64,
    findings: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    file: String,
    rule: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    line: String,
    #[serde(default = "once", skip_serializing_if = "is_once")]
    count: usize,
}

fn once() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_once(count: &usize) -> bool {
    *count == 1
}

impl Baseline {
    /// Reads what [`Baseline::written`] wrote; otherwise says why it cannot.
    pub fn read(text: &str) -> Result<Self, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.version != VERSION {
            return Err(format!(
                "version {} is not supported; the supported version is {VERSION}",
                file.version
            ));
        }
        let entries = file.findings.into_iter().map(|entry| {
            let Entry { file, rule, key, line, count } = entry;
            (Cause { file, rule, key, line }, count)
        });
        Ok(Self(entries.collect()))
    }

    /// The file, one finding per line, so that two branches can be merged.
    pub fn written(&self) -> String {
        let lines: Vec<String> = self
            .0
            .iter()
            .filter_map(|(cause, count)| {
                let Cause { file, rule, key, line } = cause.clone();
                let entry = Entry { file, rule, key, line, count: *count };
                // Text and numbers always serialize.
                serde_json::to_string(&entry).ok().map(|line| format!("    {line}"))
            })
            .collect();
        let findings = match lines.as_slice() {
            [] => "[]".to_owned(),
            lines => format!("[\n{}\n  ]", lines.join(",\n")),
        };
        format!("{{\n  \"version\": {VERSION},\n  \"findings\": {findings}\n}}\n")
    }

    /// What is found in a file.
    pub fn of(found: &[Diagnostic], file: &str, text: &str) -> Self {
        let mut all = BTreeMap::new();
        for found in found {
            *all.entry(Cause::of(found, file, text)).or_default() += 1;
        }
        Self(all)
    }

    /// Takes in what is found elsewhere. A file that several scripts name is found several times, with the same causes.
    pub fn add(&mut self, other: Self) {
        for (cause, count) in other.0 {
            let known = self.0.entry(cause).or_default();
            *known = count.max(*known);
        }
    }

    /// Takes findings out that are known. Of one cause only as many as are known.
    pub fn take_known(
        &self,
        found: &mut Vec<Diagnostic>,
        file: &str,
        text: &str,
    ) -> Vec<Diagnostic> {
        let mut seen = BTreeMap::<Cause, usize>::new();
        let (known, told) = std::mem::take(found).into_iter().partition(|found| {
            let cause = Cause::of(found, file, text);
            let count = self.0.get(&cause).copied().unwrap_or(0);
            let seen = seen.entry(cause).or_default();
            *seen += 1;
            *seen <= count
        });
        *found = told;
        known
    }

    /// The causes, in the order of their files.
    pub fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.0.keys()
    }

    /// How many findings there are.
    pub fn len(&self) -> usize {
        self.0.values().sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a cause is among them.
    pub fn contains(&self, cause: &Cause) -> bool {
        self.0.contains_key(cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;
    use crate::settings::Settings;

    fn found(text: &str) -> Vec<Diagnostic> {
        check(text.as_bytes(), &Settings::default()).diagnostics
    }

    #[test]
    fn a_known_finding_may_move_and_a_new_one_is_told() {
        let before = "{\"train_batch_size\": 8, \"nobody\": 1}";
        let known = Baseline::of(&found(before), "a.json", before);
        let known = Baseline::read(&known.written()).expect("a baseline");
        let after = "{\n\n  \"train_batch_size\": 16,\n  \"other\": 2,\n  \"nobody\": 3\n}";
        let mut told = found(after);
        assert_eq!(told.len(), 2);
        assert_eq!(known.take_known(&mut told, "a.json", after).len(), 1);
        assert_eq!(told[0].path.to_string(), "other");
        let mut elsewhere = found(after);
        assert!(known.take_known(&mut elsewhere, "b.json", after).is_empty());
    }

    #[test]
    fn of_one_cause_only_as_many_are_known() {
        let twice = "{\"train_batch_size\": 8, \"a\": 1, \"a\": 2}";
        let thrice = "{\"train_batch_size\": 8, \"a\": 1, \"a\": 2, \"a\": 3}";
        let known = Baseline::of(&found(twice), "a.json", twice);
        let mut told = found(thrice);
        let all = told.len();
        let hidden = known.take_known(&mut told, "a.json", thrice);
        assert_eq!((hidden.len(), told.len()), (known.len(), all - known.len()));
    }

    #[test]
    fn without_a_key_the_line_stands_for_one() {
        assert_eq!(line_at("a\n  torchrun x \\\nb", 6), "torchrun x \\");
        assert_eq!((line_at("", 3), line_at("é", 1)), (String::new(), "é".to_owned()));
    }

    #[test]
    fn what_is_no_baseline_is_refused() {
        assert!(Baseline::read("{\"version\": 2, \"findings\": []}").is_err());
        assert!(Baseline::read("[]").is_err());
        assert_eq!(Baseline::read(&Baseline::default().written()), Ok(Baseline::default()));
    }
}
