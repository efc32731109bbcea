//! The known word nearest to a misspelt one.

/// Longer words than this are not typing errors, and comparing them would cost time.
const LONGEST: usize = 64;

/// The candidate a person most likely meant, if any is near enough.
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let lower = word.to_lowercase().replace(['-', ' '], "_");
    candidates
        .map(|candidate| (similarity(&lower, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= 0.75)
        .max_by(|(a, left), (b, right)| a.total_cmp(b).then_with(|| right.cmp(left)))
        .map(|(_, candidate)| candidate.to_owned())
}

/// A missing or extra `stage3_` is a common slip and says nothing about the rest of the word.
fn similarity(word: &str, candidate: &str) -> f64 {
    let plain = strsim::normalized_damerau_levenshtein(word, candidate);
    let bare =
        |text: &str| text.trim_start_matches("stage3_").trim_start_matches("zero_").to_owned();
    let stripped = strsim::normalized_damerau_levenshtein(&bare(word), &bare(candidate));
    plain.max(stripped * 0.99)
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
