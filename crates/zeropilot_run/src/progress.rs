//! How far training is, as its log tells.
//!
//! Programs print steps in many ways; a number behind a word such as `step` is one, and a number behind `loss` is the
//! loss. The HF Trainer prints losses without steps; they are counted.

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Progress {
    /// The optimizer step.
    pub(crate) step: Option<u64>,
    /// The loss; not a number if it says so.
    pub(crate) loss: Option<f64>,
}

const STEP_WORDS: [&str; 3] = ["global_step", "step", "iteration"];
const LOSS_WORDS: [&str; 1] = ["loss"];

/// Reads a line.
pub(crate) fn read(line: &str) -> Option<Progress> {
    let lower = line.to_ascii_lowercase();
    let loss = after(&lower, &LOSS_WORDS, number);
    let step = after(&lower, &STEP_WORDS, |text| text.parse().ok());
    // DeepSpeed's own line has no loss but says how many steps were skipped.
    let is_step = loss.is_some() || lower.contains("skipped=") || lower.contains("samples/sec");
    let progress = Progress { step: step.filter(|_| is_step), loss };
    (progress != Progress::default()).then_some(progress)
}

fn number(text: &str) -> Option<f64> {
    match text {
        "nan" | "-nan" => Some(f64::NAN),
        "inf" | "-inf" => Some(f64::INFINITY),
        _ => text.parse().ok(),
    }
}

/// The number behind the first of these words that has one.
fn after<T>(line: &str, words: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    words.iter().find_map(|word| {
        line.match_indices(word).find_map(|(at, _)| {
            let is_whole =
                !line[..at].ends_with(|before: char| before.is_ascii_alphabetic() || before == '_');
            let rest =
                line[at + word.len()..].trim_start_matches(['\'', '"', ':', '=', ' ', '[', '#']);
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
                .unwrap_or(rest.len());
            let rest = rest[..end].trim_end_matches('.');
            if is_whole { parse(rest) } else { None }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_losses_are_read_as_programs_print_them() {
        let told = |line: &str| read(line).map(|progress| (progress.step, progress.loss));
        for (line, expected) in [
            ("step 12 loss 4.1234", Some((Some(12), Some(4.1234)))),
            ("{'loss': '4.1', 'grad_norm': '1.2', 'epoch': '0.1'}", Some((None, Some(4.1)))),
            ("{'loss': 4.1, 'epoch': 0.1}", Some((None, Some(4.1)))),
            (
                "[2026-01-01] [INFO] [logging.py:96:log_dist] [Rank 0] step=10, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]",
                Some((Some(10), None)),
            ),
            ("Step 10/100, Loss = 2.5e-1", Some((Some(10), Some(0.25)))),
            (" iteration       20/     100 | lm loss: 1.0E+00 |", Some((Some(20), Some(1.0)))),
            ("in the next step we lose", None),
            ("{'eval_loss': 3.0}", None),
            ("Current loss scale already at minimum", None),
        ] {
            assert_eq!(told(line), expected, "{line}");
        }
        assert!(read("step 3 loss nan").and_then(|told| told.loss).is_some_and(f64::is_nan));
    }
}
