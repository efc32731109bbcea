//! How far training is, as its log tells.
//!
//! Programs print steps in many ways; a number behind a word such as `step` is one, and a number behind `loss` is the
//! loss. The HF Trainer prints losses without steps, and steps as a bar of tqdm without a name; bars with a name, such as
//! those of loading and of data, are not about training. Where there is neither, losses are counted.

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Progress {
    /// The optimizer step.
    pub(crate) step: Option<u64>,
    /// The loss; not a number if it says so.
    pub(crate) loss: Option<f64>,
    /// The norm of the gradients; not a number if it says so.
    pub(crate) grad_norm: Option<f64>,
    /// The learning rate.
    pub(crate) learning_rate: Option<f64>,
    /// The epoch, if the line counts them in whole numbers.
    pub(crate) epoch: Option<u64>,
    /// The steps there will be.
    pub(crate) total: Option<u64>,
    /// Whether a bar says so, which may also be that of an evaluation.
    pub(crate) is_bar: bool,
    /// Tokens in a second, over all ranks.
    pub(crate) tokens_per_second: Option<f64>,
}

const STEP_WORDS: [&str; 3] = ["global_step", "step", "iteration"];
const LOSS_WORDS: [&str; 1] = ["loss"];
const NORM_WORDS: [&str; 2] = ["grad_norm", "grad norm"];
const RATE_WORDS: [&str; 3] = ["learning_rate", "learning rate", "lr"];
const EPOCH_WORDS: [&str; 1] = ["epoch"];
const TOKEN_WORDS: [&str; 4] = ["tokens_per_second", "tokens per second", "tokens/sec", "tokens/s"];
/// How the HF Trainer announces them.
const TOTAL: &str = "total optimization steps =";

/// Reads a line.
pub(crate) fn read(line: &str) -> Option<Progress> {
    if let Some(bar) = bar(line) {
        return Some(bar);
    }
    let lower = line.to_ascii_lowercase();
    let loss = after(&lower, &LOSS_WORDS, |text, _| number(text));
    let step = after(&lower, &STEP_WORDS, |text, rest| Some((text.parse().ok()?, total(rest))));
    // DeepSpeed's own line has no loss but says how many steps were skipped.
    let is_step = loss.is_some() || lower.contains("skipped=") || lower.contains("samples/sec");
    let step = step.filter(|_| is_step);
    let announced = || {
        let text = lower.split_once(TOTAL)?.1.trim();
        text.replace(',', "").parse().ok()
    };
    let progress = Progress {
        step: step.map(|(step, _)| step),
        loss,
        grad_norm: after(&lower, &NORM_WORDS, |text, _| number(text)).filter(|_| is_step),
        learning_rate: after(&lower, &RATE_WORDS, |text, _| number(text)).filter(|_| is_step),
        epoch: after(&lower, &EPOCH_WORDS, |text, _| text.parse().ok()).filter(|_| step.is_some()),
        total: step.and_then(|(_, total)| total).or_else(announced),
        is_bar: false,
        tokens_per_second: after(&lower, &TOKEN_WORDS, |text, _| number(text))
            .filter(|rate| is_step && rate.is_finite()),
    };
    (progress != Progress::default()).then_some(progress)
}

/// A bar of tqdm that has no name: ` 12%|###   | 12/100 [00:10<01:13,  1.20it/s]`.
fn bar(line: &str) -> Option<Progress> {
    let (percent, rest) = line.trim_start().split_once("%|")?;
    percent.parse::<u8>().ok()?;
    let (_, rest) = rest.rsplit_once("| ")?;
    let (done, rest) = rest.split_once('/')?;
    let (total, _) = rest.split_once(" [")?;
    let number = |text: &str| text.trim().parse().ok();
    Some(Progress {
        step: Some(number(done)?),
        total: Some(number(total)?),
        is_bar: true,
        ..Progress::default()
    })
}

/// What stands behind the last bar of tqdm in a line, if anything does; otherwise the line.
pub(crate) fn behind_bar(line: &str) -> &str {
    let behind =
        line.rsplit_once("%|").and_then(|(_, bar)| bar.split_once("| ")?.1.split_once(']'));
    match behind {
        Some((count, rest)) if count.contains(" [") && !rest.trim().is_empty() => rest.trim_start(),
        _ => line,
    }
}

/// The number behind `/`.
fn total(rest: &str) -> Option<u64> {
    let rest = rest.trim_start().strip_prefix('/')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

impl Progress {
    /// Whether training goes on with numbers that are none; nothing if the line does not tell.
    ///
    /// The HF Trainer leaves losses that are no numbers out of its mean, and prints what is left: 0 if there is nothing. Then the
    /// norm of the gradients shows it. A norm alone that is infinite is a step that fp16 skips.
    pub(crate) fn is_finite(&self) -> Option<bool> {
        let loss = self.loss?;
        let norm = self.grad_norm.unwrap_or(0.0);
        Some(loss.is_finite() && !norm.is_nan() && (norm.is_finite() || loss != 0.0))
    }

    /// The loss; NaN where the HF Trainer prints the 0 that is left of a mean without numbers.
    pub(crate) fn real_loss(&self) -> Option<f64> {
        let loss = self.loss?;
        let is_left_over = loss == 0.0 && self.grad_norm.is_some_and(|norm| !norm.is_finite());
        Some(if is_left_over { f64::NAN } else { loss })
    }
}

/// What all lines so far tell together.
#[derive(Debug, Default)]
pub(crate) struct Course {
    losses: u64,
    /// Whether lines name their steps: then bars count something else, and losses need not be counted.
    names_steps: bool,
    /// Of the first bar; others are of evaluations.
    bar: Option<u64>,
    total: Option<u64>,
    /// The epoch and the step in it of the last line that names both.
    last: Option<(u64, u64)>,
    /// Steps of the epochs before, where each begins anew.
    before: u64,
}

impl Course {
    /// The step a line tells of, if it does.
    pub(crate) fn step(&mut self, progress: &Progress) -> Option<u64> {
        if progress.is_bar {
            let total = progress.total?;
            let is_first = *self.bar.get_or_insert(total) == total;
            return progress.step.filter(|_| is_first && !self.names_steps);
        }
        if self.before == 0 {
            self.total = progress.total.or(self.total);
        } else {
            // The total is that of an epoch.
            self.total = None;
        }
        if progress.step.is_some() {
            self.names_steps = true;
            return progress.step.map(|step| self.over_epochs(step, progress.epoch));
        }
        progress.loss?;
        self.losses += 1;
        (self.bar.is_none() && !self.names_steps).then_some(self.losses)
    }

    /// Many programs count the steps of each epoch from 1 again.
    fn over_epochs(&mut self, step: u64, epoch: Option<u64>) -> u64 {
        let Some(epoch) = epoch else { return step };
        if let Some((before, last)) = self.last.replace((epoch, step))
            && epoch > before
            && step <= last
        {
            // Counted from 0, the last step of an epoch has the number before its size.
            self.before += if step == 0 { last + 1 } else { last };
        }
        self.before + step
    }

    /// Whether steps are those that the program names, and not lines with a loss.
    pub(crate) fn names_steps(&self) -> bool {
        self.names_steps || self.bar.is_some()
    }

    /// The steps there will be.
    pub(crate) fn total(&self) -> Option<u64> {
        self.total.or(self.bar.filter(|_| !self.names_steps))
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        "nan" | "-nan" => Some(f64::NAN),
        "inf" | "-inf" => Some(f64::INFINITY),
        _ => text.parse().ok(),
    }
}

/// The number behind the first of these words that has one.
fn after<T>(line: &str, words: &[&str], parse: impl Fn(&str, &str) -> Option<T>) -> Option<T> {
    words.iter().find_map(|word| {
        line.match_indices(word).find_map(|(at, _)| {
            let is_whole =
                !line[..at].ends_with(|before: char| before.is_ascii_alphabetic() || before == '_');
            let rest = line[at + word.len()..]
                .trim_start_matches(['\'', '"', ':', '=', ' ', '[', '#', ',']);
            // As PyTorch prints a tensor.
            let rest =
                rest.strip_prefix("tensor(").map_or(rest, |rest| rest.trim_start_matches('['));
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
                .unwrap_or(rest.len());
            let (text, rest) = rest.split_at(end);
            if is_whole { parse(text.trim_end_matches('.'), rest) } else { None }
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
        assert_eq!(read("Step 10/100, Loss = 2.5e-1").and_then(|told| told.total), Some(100));
        let iteration = " iteration       20/     100 | lm loss: 1.0E+00 |";
        assert_eq!(read(iteration).and_then(|told| told.total), Some(100));
        let total = "[INFO|trainer.py:2397] >>   Total optimization steps = 1,500";
        assert_eq!(read(total).and_then(|told| told.total), Some(1500));
        for (line, rate) in [
            ("[Rank 0] step=10, skipped=0, lr=[0.001, 0.001], mom=[(0.9, 0.999)]", 0.001),
            ("{'loss': 4.1, 'grad_norm': 1.2, 'learning_rate': 4e-05, 'epoch': 0.1}", 4e-5),
            (" iteration 20/ 100 | learning rate: 1.500E-04 | lm loss: 1.0E+00 |", 1.5e-4),
        ] {
            assert_eq!(read(line).and_then(|told| told.learning_rate), Some(rate), "{line}");
        }
        let tokens = "step 3 loss 2.0 tokens_per_second=812.5";
        assert_eq!(read(tokens).and_then(|told| told.tokens_per_second), Some(812.5));
        assert!(read("step 3 loss nan").and_then(|told| told.loss).is_some_and(f64::is_nan));
    }

    fn steps(lines: &[&str]) -> (Vec<u64>, Option<u64>) {
        let mut course = Course::default();
        let told = lines.iter().filter_map(|line| read(line));
        let steps = told.filter_map(|progress| course.step(&progress)).collect();
        (steps, course.total())
    }

    #[test]
    fn the_bar_of_the_trainer_counts_and_bars_of_others_do_not() {
        let trainer = [
            "Loading checkpoint shards:  50%|#####     | 2/4 [00:01<00:01,  1.20it/s]",
            "  0%|          | 0/50 [00:00<?, ?it/s]",
            " 20%|##        | 10/50 [00:10<00:40,  1.00it/s]",
            "{'loss': 4.1, 'grad_norm': 1.0, 'epoch': 0.1}",
            " 12%|#2        | 1/8 [00:00<00:01,  9.00it/s]",
            " 22%|##2       | 11/50 [00:11<00:39,  1.00it/s]",
        ];
        assert_eq!(steps(&trainer), (vec![0, 10, 11], Some(50)));
    }

    #[test]
    fn named_steps_count_and_losses_only_where_nothing_else_does() {
        let named =
            ["step 1 loss 4.0", " 50%|##   | 4/8 [00:01<00:01, 3it/s]", "step 2/7 loss 3.0"];
        assert_eq!(steps(&named), (vec![1, 2], Some(7)));
        assert_eq!(steps(&["{'loss': 4.1}", "{'loss': 4.0}"]), (vec![1, 2], None));
    }

    #[test]
    fn tensors_and_norms_are_read_as_they_are_printed() {
        let read = |line: &str| read(line).expect(line);
        let told = read("step 7 loss tensor(nan, device='cuda:0', grad_fn=<NllLossBackward0>)");
        assert_eq!((told.step, told.is_finite()), (Some(7), Some(false)));
        let told = read("step 8 loss: tensor([2.5], device='cuda:0')");
        assert_eq!((told.step, told.loss), (Some(8), Some(2.5)));
        let told = read("('step', 9, 'loss', tensor(1.5))");
        assert_eq!((told.step, told.loss), (Some(9), Some(1.5)));
        for (line, is_finite) in [
            ("{'loss': '0', 'grad_norm': 'inf', 'epoch': '0.1'}", false),
            ("{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.1}", false),
            ("{'loss': 2.0, 'grad_norm': nan, 'epoch': 0.1}", false),
            ("{'loss': 2.0, 'grad_norm': inf, 'epoch': 0.1}", true),
            ("{'loss': 2.0, 'grad_norm': 1.0, 'epoch': 0.1}", true),
        ] {
            assert_eq!(read(line).is_finite(), Some(is_finite), "{line}");
        }
    }

    #[test]
    fn steps_that_begin_anew_in_each_epoch_are_added_up() {
        let line = |epoch: u64, step: u64| format!("Epoch {epoch} Step {step} Loss 2.0");
        let lines: Vec<String> =
            (1..=3).flat_map(|epoch| (1..=5).map(move |step| line(epoch, step))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(steps(&lines).0, (1..=15).collect::<Vec<u64>>());
        // Whoever counts through is left alone, and so is an epoch that is a fraction.
        assert_eq!(steps(&["epoch 1 step 5 loss 2", "epoch 2 step 6 loss 2"]).0, [5, 6]);
        assert_eq!(steps(&["step 5 loss 2 epoch 0.1", "step 6 loss 2 epoch 0.2"]).0, [5, 6]);
    }
}
