//! The known names nearest to one that is not known.

use crate::family::Family;

/// Longer words than this are not typing errors, and comparing them would cost time.
const LONGEST: usize = 96;

/// Less alike than this is another word.
const LEAST: f64 = 0.6;

/// The family whose `model_type` is nearest to this one.
pub(crate) fn nearest_family(model_type: &str) -> Option<&'static str> {
    let names = Family::ALL.iter().map(|family| family.model_type());
    nearest(model_type, names, 1).first().copied()
}

/// Up to `most` candidates like `word`, the nearest first.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    if word.is_empty() || word.len() > LONGEST {
        return Vec::new();
    }
    let lower = word.to_lowercase();
    let mut found: Vec<(f64, &str)> = candidates
        .map(|name| (strsim::normalized_damerau_levenshtein(&lower, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= LEAST)
        .collect();
    found.sort_by(|(a, left), (b, right)| b.total_cmp(a).then_with(|| left.cmp(right)));
    found.dedup_by(|(_, left), (_, right)| left == right);
    found.into_iter().map(|(_, name)| name).take(most).collect()
}
