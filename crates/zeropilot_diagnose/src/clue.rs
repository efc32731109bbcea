//! What a line of a traceback shows: the phase, and what was being allocated.
//!
//! The texts are data (`knowledge/messages/frames.json`). Where a text begins or ends with a letter, so does a name in the
//! line, unless the text has a `*` there.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde::{Deserialize, Serialize};

use crate::Phase;

const DATA: &str = zeropilot_knowledge::text("messages/frames.json");

/// What was being allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomObject"))]
#[serde(rename_all = "snake_case")]
pub enum Object {
    /// Logits, or the loss over them.
    Logits,
    /// A matrix of attention scores.
    Attention,
    /// Weights of other ranks.
    GatheredWeights,
}

/// Texts that show the same.
#[derive(Debug, Deserialize)]
pub(crate) struct Clue {
    texts: Vec<String>,
    /// One of these must stand in the same line.
    #[serde(default)]
    with: Vec<String>,
    pub(crate) phase: Option<Phase>,
    pub(crate) object: Option<Object>,
    #[cfg(test)]
    source: String,
}

#[derive(Deserialize)]
struct Data {
    clues: Vec<Clue>,
}

struct Searcher {
    automaton: AhoCorasick,
    /// Of each text: whose it is, and whether a name may go on before and behind it.
    texts: Vec<(usize, [bool; 2])>,
    clues: Vec<Clue>,
}

static SEARCHER: LazyLock<Searcher> = LazyLock::new(|| {
    let data: Data = serde_json::from_str(DATA).expect("a test reads the frames");
    let mut patterns: Vec<&str> = Vec::new();
    let mut texts = Vec::new();
    for (owner, clue) in data.clues.iter().enumerate() {
        for text in &clue.texts {
            patterns.push(text.trim_matches('*'));
            texts.push((owner, [text.starts_with('*'), text.ends_with('*')]));
        }
    }
    let automaton = AhoCorasick::new(&patterns).expect("a few short texts");
    Searcher { automaton, texts, clues: data.clues }
});

/// The clues of a line, without repeats.
pub(crate) fn search(line: &str) -> Vec<&'static Clue> {
    let line = &*unqualified(line);
    let searcher: &'static Searcher = &SEARCHER;
    let mut found: Vec<&'static Clue> = Vec::new();
    for hit in searcher.automaton.find_overlapping_iter(line) {
        let (owner, [may_begin, may_go_on]) = searcher.texts[hit.pattern().as_usize()];
        let clue = &searcher.clues[owner];
        let is_name = |letter: u8| letter.is_ascii_alphanumeric() || letter == b'_';
        let bytes = line.as_bytes();
        let goes_on = |inside: usize, outside: Option<&u8>| {
            is_name(bytes[inside]) && outside.is_some_and(|letter| is_name(*letter))
        };
        let starts_inside =
            !may_begin && hit.start() > 0 && goes_on(hit.start(), bytes.get(hit.start() - 1));
        let ends_inside = !may_go_on && goes_on(hit.end() - 1, bytes.get(hit.end()));
        let is_there = clue.with.is_empty() || clue.with.iter().any(|text| line.contains(text));
        let is_known = found.iter().any(|known| std::ptr::eq(*known, clue));
        if !starts_inside && !ends_inside && is_there && !is_known {
            found.push(clue);
        }
    }
    found
}

/// The line with the method's own name behind it, where a notebook names it with its class: `in Trainer.evaluate(self)`.
fn unqualified(line: &str) -> Cow<'_, str> {
    let name = line.rsplit_once(" in ").and_then(|(_, rest)| {
        let end = rest.find(|letter: char| !(letter.is_alphanumeric() || "_.".contains(letter)));
        let (_, method) = rest[..end.unwrap_or(rest.len())].rsplit_once('.')?;
        (!method.is_empty()).then_some(method)
    });
    name.map_or(Cow::Borrowed(line), |name| Cow::Owned(format!("{line} in {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(line: &str) -> Option<Phase> {
        search(line).iter().find_map(|clue| clue.phase)
    }

    #[test]
    fn every_clue_has_a_source_and_shows_something() {
        for clue in &SEARCHER.clues {
            assert!(!clue.source.is_empty() && !clue.texts.is_empty(), "{clue:?}");
            assert!(clue.phase.is_some() || clue.object.is_some(), "{clue:?}");
            assert!(clue.texts.iter().all(|text| text.trim_matches('*').len() > 4), "{clue:?}");
        }
    }

    #[test]
    fn a_function_is_known_by_its_whole_name_and_by_its_file_where_that_is_needed() {
        assert_eq!(phase("  File \"x.py\", line 3, in backward"), Some(Phase::Backward));
        assert_eq!(phase("  File \"x.py\", line 3, in backward_helper"), None);
        assert_eq!(phase("  File \"torch/optim/adamw.py\", line 3, in step"), Some(Phase::Step));
        let loss = search("  model_utils.py:59 in _compute_distributed_log_softmax");
        assert_eq!(loss.first().and_then(|clue| clue.object), Some(Object::Logits));
        assert_eq!(phase("  File \"environment.py\", line 3, in step"), None);
        assert_eq!(
            phase("File x/trainer.py:12, in Trainer.evaluate(self)"),
            Some(Phase::Evaluation)
        );
        assert_eq!(phase("> x.py in evaluation_loop(self, dataloader)"), Some(Phase::Evaluation));
    }
}
