//! `steps.jsonl`: every step that the log prints, one a line.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use zeropilot_record::TrainedStep;

use crate::progress::Progress;
use crate::store::now;

/// Lines of a run, about 10 MB, after which steps are written no closer than [`SPACING`].
const ALL: u64 = 100_000;
const SPACING: Duration = Duration::from_secs(10);

/// Puts together what several lines say of one step: the HF Trainer prints steps as a bar and losses by themselves.
#[derive(Debug)]
pub(crate) struct StepWriter {
    file: Option<File>,
    attempt: u32,
    pending: Option<TrainedStep>,
    /// The step before, and when it was printed.
    before: Option<(u64, Instant)>,
    lines: u64,
    written: Option<Instant>,
}

impl StepWriter {
    /// Adds to the steps of attempts before. Without a file nothing is written: the run must not end for that.
    pub(crate) fn open(directory: &Path, attempt: u32) -> Self {
        let path = directory.join("steps.jsonl");
        let file = File::options().create(true).append(true).open(path).ok();
        Self { file, attempt, pending: None, before: None, lines: 0, written: None }
    }

    /// A line told of progress; `new` is the step that it begins, `last` the one it is about.
    pub(crate) fn read(&mut self, new: Option<u64>, last: Option<u64>, progress: &Progress) {
        let Some(step) = last else { return };
        // What other ranks print of the same step is not another one.
        if new.is_some() {
            self.end();
        } else if self.pending.is_none() {
            return;
        }
        let read = Instant::now();
        let seconds = new.and_then(|step| {
            let (before, at) = self.before.replace((step, read))?;
            let steps = step.checked_sub(before).filter(|steps| *steps > 0)?;
            Some(read.duration_since(at).as_secs_f64() / steps as f64)
        });
        let pending = self.pending.get_or_insert(TrainedStep {
            at: now(),
            attempt: self.attempt,
            step,
            seconds,
            ..TrainedStep::default()
        });
        pending.loss = pending.loss.or(progress.loss);
        pending.grad_norm = pending.grad_norm.or(progress.grad_norm);
        pending.learning_rate = pending.learning_rate.or(progress.learning_rate);
    }

    /// Writes what is known of the last step.
    pub(crate) fn end(&mut self) {
        let Some(step) = self.pending.take() else { return };
        let is_close = self.written.is_some_and(|written| written.elapsed() < SPACING);
        if self.lines >= ALL && is_close {
            return;
        }
        (self.lines, self.written) = (self.lines + 1, Some(Instant::now()));
        if self.write(&step).is_err() {
            self.file = None;
        }
    }

    fn write(&mut self, step: &TrainedStep) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let text = serde_json::to_string(step)?;
        file.write_all(format!("{text}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::progress::{self, Course};

    fn written(lines: &[&str]) -> Vec<TrainedStep> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut writer = StepWriter::open(directory.path(), 2);
        let (mut course, mut last) = (Course::default(), None);
        for progress in lines.iter().filter_map(|line| progress::read(line)) {
            let new = course.step(&progress).filter(|step| Some(*step) > last);
            last = new.or(last);
            writer.read(new, last, &progress);
        }
        writer.end();
        let text = fs::read_to_string(directory.path().join("steps.jsonl")).expect("a file");
        text.lines().map(|line| serde_json::from_str(line).expect("a step")).collect()
    }

    #[test]
    fn a_loss_without_a_step_is_that_of_the_bar_before_it() {
        let steps = written(&[
            " 10%|# | 1/10 [00:01<00:09, 1it/s]",
            " 20%|## | 2/10 [00:02<00:08, 1it/s]",
            "{'loss': 4.1, 'grad_norm': 1.5, 'learning_rate': 4e-05, 'epoch': 0.2}",
            " 30%|### | 3/10 [00:03<00:07, 1it/s]",
        ]);
        let seen: Vec<_> = steps.iter().map(|step| (step.step, step.loss)).collect();
        assert_eq!(seen, [(1, None), (2, Some(4.1)), (3, None)]);
        assert_eq!((steps[1].grad_norm, steps[1].learning_rate), (Some(1.5), Some(4e-5)));
        assert!(steps[0].seconds.is_none() && steps[1].seconds.is_some());
        assert_eq!(steps[2].attempt, 2);
    }

    #[test]
    fn the_line_of_deepspeed_and_that_of_the_program_are_one_step() {
        let steps = written(&[
            "[Rank 0] step=1, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]",
            "step 1 loss 4.0",
            "step 1 loss 5.0",
            "[Rank 0] step=2, skipped=0, lr=[0.002], mom=[(0.9, 0.999)]",
            "step 2 loss 3.0",
        ]);
        let seen: Vec<_> =
            steps.iter().map(|step| (step.step, step.loss, step.learning_rate)).collect();
        assert_eq!(seen, [(1, Some(4.0), Some(0.001)), (2, Some(3.0), Some(0.002))]);
    }
}
