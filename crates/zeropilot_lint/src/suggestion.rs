//! The known key a person most likely meant.

use std::iter::once;

use zeropilot_config::nearest::nearest;

/// The candidate nearest to `word`, if it can be a slip of the pen for it.
pub(crate) fn suggest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).filter(|candidate| is_slip(word, candidate))
}

/// Whether one can be a slip of the other: `eval_batch_size` is near `train_batch_size` by its
/// letters, but nobody writes the one for the other.
fn is_slip(word: &str, candidate: &str) -> bool {
    let word = word.to_lowercase().replace(['-', ' '], "_");
    if word.replace('_', "") == candidate.replace('_', "") {
        return true;
    }
    let has_like = |text: &str, part: &str| {
        text.split('_').any(|other| part == other || nearest(part, once(other)).is_some())
    };
    word.split('_').all(|part| has_like(candidate, part))
        || candidate.split('_').all(|part| has_like(&word, part))
}

#[cfg(test)]
mod tests {
    use zeropilot_config::schema::EngineVersion;

    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not_taken_for_slips() {
        let schema = EngineVersion::NEWEST.schema();
        let find = |word| suggest(word, schema.top_level_keys());
        for (slip, key) in [
            ("zero_optimisation", "zero_optimization"),
            ("Train-Batch-Size", "train_batch_size"),
            ("fp_16", "fp16"),
            ("bp16", "bf16"),
            ("gradient_clipp1ng", "gradient_clipping"),
            ("gradient_accumulation", "gradient_accumulation_steps"),
            ("lr_scheduler", "scheduler"),
        ] {
            assert_eq!(find(slip).as_deref(), Some(key), "{slip}");
        }
        for other_word in ["eval_batch_size", "gradient_accumulation_dtype", "use_dynamic_tiling"] {
            assert_eq!(find(other_word), None, "{other_word}");
        }
    }
}
