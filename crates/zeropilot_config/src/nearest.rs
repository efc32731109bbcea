//! The known word nearest to a misspelt one.

/// Longer words than this are not typing errors, and comparing them would cost time.
const LONGEST: usize = 64;

/// The share of letters that must agree.
const NEAR_ENOUGH: f64 = 0.75;

/// Said or left out by mistake so often that they tell nothing about the rest of the word.
const PREFIXES: [&str; 2] = ["stage3_", "zero_"];

/// The candidate a person most likely meant, if any is near enough.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let candidates = candidates.filter(|candidate| candidate.len() <= LONGEST);
    let lower = word.to_lowercase().replace(['-', ' '], "_");
    candidates
        .map(|candidate| (similarity(&lower, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= NEAR_ENOUGH)
        .max_by(|(a, left), (b, right)| a.total_cmp(b).then_with(|| right.cmp(left)))
        .map(|(_, candidate)| candidate.to_owned())
}

fn similarity(word: &str, candidate: &str) -> f64 {
    let plain = letters_in_common(word, candidate);
    let (bare_word, bare_candidate) = (bare(word), bare(candidate));
    if bare_word.len() == word.len() && bare_candidate.len() == candidate.len() {
        return plain;
    }
    plain.max(letters_in_common(bare_word, bare_candidate) * 0.99)
}

fn bare(word: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word)
}

/// One minus the share of letters to change, or 0 where the lengths alone say that it is too many.
fn letters_in_common(left: &str, right: &str) -> f64 {
    let longest = left.len().max(right.len());
    let allowed = longest as f64 * (1.0 - NEAR_ENOUGH);
    if left.len().abs_diff(right.len()) as f64 > allowed
        || different_letters(left, right) as f64 > allowed
    {
        return 0.0;
    }
    1.0 - strsim::osa_distance(left, right) as f64 / longest as f64
}

/// How many letters one word has that the other has not: no fewer than must be changed.
fn different_letters(left: &str, right: &str) -> usize {
    let mut balance = [0_i8; 32];
    // Words are shorter than `LONGEST`, so a count fits.
    left.bytes().for_each(|byte| balance[usize::from(byte & 31)] += 1);
    right.bytes().for_each(|byte| balance[usize::from(byte & 31)] -= 1);
    let surplus: usize = balance.iter().map(|count| usize::from(count.unsigned_abs())).sum();
    surplus.div_ceil(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_spelling_and_case_find_their_word() {
        let keys =
            ["zero_optimization", "train_batch_size", "stage3_max_live_parameters", "fp16", "bf16"];
        let find = |word| nearest(word, keys.into_iter());
        assert_eq!(find("zero_optimisation").as_deref(), Some("zero_optimization"));
        assert_eq!(find("Train-Batch-Size").as_deref(), Some("train_batch_size"));
        assert_eq!(find("max_live_parameters").as_deref(), Some("stage3_max_live_parameters"));
        assert_eq!(find("use_dynamic_tiling"), None);
    }
}
