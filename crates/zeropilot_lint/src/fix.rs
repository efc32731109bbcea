//! Applying fixes until none is left, without ever making things worse.
//!
//! Fixes are tried together and then judged again: a config that was accepted stays accepted, and a
//! finding that is fixed is gone. Where all of them together do not manage that, they are tried one
//! by one. Everything that no fix names stays as it is, byte for byte.

use std::collections::HashSet;

use zeropilot_config::syntax::decode;

use crate::check::check;
use crate::diagnostic::{Diagnostic, Fix, Safety};
use crate::edit::{Edit, apply};
use crate::report::{Report, Verdict};
use crate::settings::Settings;

/// Every round fixes at least one finding; a file that needs more is left to its owner.
const ROUNDS: usize = 64;

/// A file after its fixes.
#[derive(Debug, Clone)]
pub struct Fixed {
    /// What it says now.
    pub text: String,
    /// What is found in it now; [`Report::fixed`] tells what was put right.
    pub report: Report,
}

/// Applies the safe fixes of a config, with `guesses` also those that guess at what was meant.
/// `None` if there is nothing to apply.
pub fn fix(bytes: &[u8], settings: &Settings, guesses: bool) -> Option<Fixed> {
    let original = decode(bytes).ok()?;
    let mut text = original.to_owned();
    let mut report = check(bytes, settings);
    let mut fixed = Vec::new();
    let mut seen = HashSet::from([text.clone()]);
    for _ in 0..ROUNDS {
        let Some(next) = round(&text, &report, settings, guesses) else { break };
        if !seen.insert(next.text.clone()) {
            break;
        }
        fixed.extend(next.applied);
        text = next.text;
        report = next.report;
    }
    (text != original).then(|| {
        report.fixed = fixed;
        Fixed { text, report }
    })
}

/// What some fixes lead to.
struct Attempt {
    text: String,
    report: Report,
    applied: Vec<Diagnostic>,
}

fn round(text: &str, report: &Report, settings: &Settings, guesses: bool) -> Option<Attempt> {
    let allowed = |fix: &Fix| match fix.safety {
        Safety::Safe => true,
        Safety::Unsafe => guesses,
    };
    let fixable = |found: &&Diagnostic| found.fix.as_ref().is_some_and(allowed);
    let candidates: Vec<&Diagnostic> = report.diagnostics.iter().filter(fixable).collect();
    attempt(text, report, settings, &compatible(&candidates))
        .or_else(|| candidates.iter().find_map(|one| attempt(text, report, settings, &[one])))
}

/// As many as do not touch each other's places, the earlier findings first. Those that ask for the
/// very same edits are one.
fn compatible<'a>(candidates: &[&'a Diagnostic]) -> Vec<&'a Diagnostic> {
    let mut taken: Vec<&Diagnostic> = Vec::new();
    for candidate in candidates {
        let edits = edits_of(candidate);
        let is_free = taken.iter().all(|other| {
            let others = edits_of(other);
            edits == others || !edits.iter().any(|one| others.iter().any(|two| touch(one, two)))
        });
        if is_free {
            taken.push(candidate);
        }
    }
    taken
}

fn edits_of(found: &Diagnostic) -> &[Edit] {
    found.fix.as_ref().map_or(&[], |fix| &fix.edits)
}

/// Whether the order of two edits would matter.
fn touch(one: &Edit, two: &Edit) -> bool {
    one.span.start == two.span.start
        || one.span.start < two.span.end && two.span.start < one.span.end
}

/// The text with these fixes, if it is better off with them.
fn attempt(
    text: &str,
    report: &Report,
    settings: &Settings,
    chosen: &[&Diagnostic],
) -> Option<Attempt> {
    let mut edits: Vec<Edit> = chosen.iter().flat_map(|found| edits_of(found)).cloned().collect();
    edits.sort_by_key(|edit| edit.span);
    edits.dedup();
    let text_after = apply(text, &edits);
    if text_after == text {
        return None;
    }
    let after = check(text_after.as_bytes(), settings);
    let is_broken = report.verdict == Verdict::Accept && after.verdict == Verdict::Reject;
    let is_gone = |found: &&Diagnostic| alike(found, &after) < alike(found, report);
    (!is_broken && chosen.iter().all(is_gone)).then(|| Attempt {
        text: text_after,
        report: after,
        applied: chosen.iter().map(|found| (*found).clone()).collect(),
    })
}

/// How many findings of this rule there are about the same key.
fn alike(found: &Diagnostic, report: &Report) -> usize {
    let same = |other: &&Diagnostic| other.rule == found.rule && other.path == found.path;
    report.diagnostics.iter().filter(same).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(config: &str, guesses: bool) -> Option<(String, Vec<&'static str>)> {
        let settings = Settings { world_size: Some(2), ..Settings::default() };
        let fixed = fix(config.as_bytes(), &settings, guesses)?;
        let codes = fixed.report.fixed.iter().map(|found| found.rule.code).collect();
        Some((fixed.text, codes))
    }

    #[test]
    fn several_fixes_keep_everything_else() {
        let config = "{\r\n  \"train_micro_batch_size_per_gpu\":   1,\r\n  # stays\r\n  \"zero_optimization\": {\"stage\": 2,\r\n    \"cpu_offload\": true, \"allgather_bucket_size\" : 5e8,},\r\n  \"overlap_comm\": true\r\n}\r\n";
        let (text, codes) = fixed(config, true).expect("fixes");
        assert_eq!(codes, ["K14", "K02"]);
        assert_eq!(
            text,
            "{\r\n  \"train_micro_batch_size_per_gpu\":   1,\r\n  # stays\r\n  \"zero_optimization\": {\"overlap_comm\": true, \"stage\": 2,\r\n    \"offload_optimizer\": {\"device\": \"cpu\"}, \"allgather_bucket_size\" : 5e8,}\r\n}\r\n"
        );
    }

    #[test]
    fn guesses_are_made_only_if_asked_for() {
        let config = "{\"train_batch_size\": 8, \"gradient_clipp1ng\": 1.0}";
        assert_eq!(fixed(config, false), None);
        let (text, codes) = fixed(config, true).expect("a guess");
        assert_eq!(
            (text.as_str(), codes),
            ("{\"train_batch_size\": 8, \"gradient_clipping\": 1.0}", vec!["K01"])
        );
    }

    #[test]
    fn neighbours_that_both_go_are_taken_one_after_the_other() {
        let config = r#"{"train_batch_size": 8, "fp16": {"enabled": true, "fp16_opt_level": "O1", "opt_level": "O2"}}"#;
        let (text, codes) = fixed(config, true).expect("fixes");
        assert_eq!(text, r#"{"train_batch_size": 8, "fp16": {"enabled": true}}"#);
        assert_eq!(codes, ["K04", "K04"]);
    }
}
