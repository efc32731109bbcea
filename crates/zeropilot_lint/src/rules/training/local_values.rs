//! Values of a training loop that differ from rank to rank: its batches, what the model makes of them, and what is
//! computed from those.

use std::collections::BTreeSet;

use zeropilot_config::syntax::Span;
use zeropilot_job::{Guard, Loop, PythonScript};

/// Words of calls by which ranks come to the same value.
const AGREEING: [&str; 5] = ["reduce", "gather", "broadcast", "agree", "any_rank"];

/// What may be asked of a value that is the same on all ranks, whatever they hold.
const ALIKE: [&str; 9] = [
    "isinstance(",
    "hasattr(",
    ".dim()",
    ".ndim",
    ".dtype",
    ".device",
    ".shape",
    ".size(",
    "type(",
];

/// Calls in a condition that ask only for the value itself.
const PLAIN: [&str; 18] = [
    "isnan", "isinf", "isfinite", "item", "any", "all", "sum", "max", "min", "abs", "numel", "len",
    "float", "bool", "int", "get", "mean", "detach",
];

/// Names in a text, without attributes of others.
pub(super) fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let parts = text.split(move |c: char| !is_part(c) && c != '.');
    let first = parts.filter_map(move |part| part.split('.').next());
    first.filter(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// Whether a place is inside another.
pub(super) fn is_within(inner: Span, outer: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Whether ranks come to an agreement between the beginning of a loop and a place in it.
pub(super) fn agree(script: &PythonScript, within: &Loop, before: Span) -> bool {
    let mut calls = script
        .calls
        .iter()
        .filter(|call| is_within(call.span, within.span) && call.span.start <= before.start);
    calls.any(|call| AGREEING.iter().any(|word| call.callee.contains(word)))
}

/// Whether a name is that of a counter, which all ranks count alike.
fn counts(name: &str) -> bool {
    let words = ["step", "idx", "index", "cnt", "count", "iter", "num", "epoch"];
    name.len() == 1 || words.iter().any(|word| name.to_lowercase().contains(word))
}

/// Names in a loop whose values differ from rank to rank, where `model` is what runs the model.
pub(super) fn local_names<'s>(
    script: &'s PythonScript,
    within: &'s Loop,
    model: &str,
) -> BTreeSet<&'s str> {
    let mut local = BTreeSet::new();
    // A name stands for what it is assigned.
    let meant = script.assignments.iter().filter(|it| it.target == within.over);
    let meant: String = meant.map(|it| it.value.to_lowercase()).collect();
    let over = format!("{} {meant}", within.over.to_lowercase());
    let is_data = ["loader", "data", "batch", "iter"].iter().any(|word| over.contains(word));
    if is_data && !over.contains("range(") {
        let is_counted = over.contains("enumerate(");
        let targets = within.targets.iter().skip(usize::from(is_counted)).map(String::as_str);
        local.extend(targets.filter(|name| !counts(name)));
    }
    let runs = format!("{model}(");
    let in_loop = |span: Span| is_within(span, within.span);
    let assigned = || script.assignments.iter().filter(|it| in_loop(it.span));
    // What is computed from a value that is computed from another is found in the next round.
    for _ in 0..4 {
        for it in assigned() {
            let agrees = AGREEING.iter().any(|word| it.value.contains(word));
            let comes = it.value.starts_with(&runs)
                || it.value.starts_with("next(")
                || names(&it.value).any(|name| local.contains(name));
            if comes && !agrees {
                local.insert(it.target.as_str());
            }
        }
    }
    local
}

/// The condition on the way to a place that asks for something that differs from rank to rank.
pub(super) fn asked<'g>(local: &BTreeSet<&str>, guards: &'g [Guard]) -> Option<&'g Guard> {
    guards.iter().find(|guard| {
        let text = guard.condition.as_str();
        let is_alike = ALIKE.iter().any(|word| text.contains(word));
        // The last batch is short on all ranks alike.
        let counts = text.contains("len(") && !text.contains("== 0");
        names(text).any(|name| local.contains(name)) && !is_alike && !counts && is_plain(text)
    })
}

/// Whether a condition calls nothing that could ask other ranks.
fn is_plain(condition: &str) -> bool {
    let mut rest = condition;
    while let Some(at) = rest.find('(') {
        let before = rest[..at].trim_end();
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let called = before.rsplit(|c| !is_part(c)).next().unwrap_or("");
        if !called.is_empty()
            && !PLAIN.contains(&called)
            && !matches!(called, "not" | "and" | "or" | "in")
        {
            return false;
        }
        rest = &rest[at + 1..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_could_ask_other_ranks_are_left_alone() {
        for plain in ["torch.isnan(loss)", "not loss.isfinite().all()", "batch is None", "(a or b)"]
        {
            assert!(is_plain(plain), "{plain}");
        }
        for open in ["skip(batch)", "any_rank_nan(loss)", "self.bad(loss.item())"] {
            assert!(!is_plain(open), "{open}");
        }
        assert!(counts("batch_cnt") && counts("i") && !counts("batch"));
        assert_eq!(names("a.b(c[d], 'e') + 1").collect::<Vec<_>>(), ["a", "c", "d", "e"]);
    }
}
