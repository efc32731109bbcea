//! What the parts of a step take, where DeepSpeed's `wall_clock_breakdown` prints them.

use zeropilot_record::StepParts;

/// The text before the times.
const HEAD: &str = "time (ms) | ";

/// Reads a line: the sums over all micro-steps, not those of a single one.
pub(crate) fn read(line: &str) -> Option<StepParts> {
    let times = line.split_once(HEAD)?.1;
    let of = |name: &str| {
        let text = times.split(" | ").find_map(|part| part.strip_prefix(name)?.strip_prefix(": "));
        let milliseconds: f64 = text?.trim().parse().ok()?;
        Some(milliseconds / 1000.0).filter(|seconds| seconds.is_finite())
    };
    Some(StepParts { forward: of("fwd")?, backward: of("bwd")?, step: of("step")? })
}

/// Their mean; the first step is left out, as kernels are chosen and caches filled in it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mean {
    has_first: bool,
    sum: StepParts,
    count: f64,
}

impl Mean {
    pub(crate) fn add(&mut self, parts: StepParts) {
        if !std::mem::replace(&mut self.has_first, true) {
            return;
        }
        self.sum.forward += parts.forward;
        self.sum.backward += parts.backward;
        self.sum.step += parts.step;
        self.count += 1.0;
    }

    pub(crate) fn get(&self) -> Option<StepParts> {
        let StepParts { forward, backward, step } = self.sum;
        let of = |sum: f64| sum / self.count;
        (self.count > 0.0).then(|| StepParts {
            forward: of(forward),
            backward: of(backward),
            step: of(step),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As two gloo ranks with two micro-steps printed them, under DeepSpeed 0.19.8.
    #[test]
    fn the_line_of_a_whole_step_is_read_and_that_of_a_micro_step_is_not() {
        let whole = |step: &str| {
            format!(
                "[Rank 0] time (ms) | fwd: 37.70 | bwd: 89.04 | bwd_inner: 56.60 | bwd_allreduce: 32.31 | step: {step}"
            )
        };
        let micro = "[Rank 0] time (ms) | fwd_microstep: 24.64 | bwd_microstep: 41.07 | bwd_inner_microstep: 22.07 | bwd_allreduce_microstep: 18.94 | step_microstep: 0.02";
        let optimizer = "[Rank 0] time (ms) | optimizer_allgather: 14.93 | optimizer_gradients: 0.33 | optimizer_step: 0.32";
        assert_eq!((read(micro), read(optimizer)), (None, None));
        let read = |text: &str| read(&whole(text)).expect("times");
        let mut mean = Mean::default();
        mean.add(StepParts { forward: 9.0, ..read("9000.0") });
        assert_eq!(mean.get(), None);
        mean.add(read("25.0"));
        mean.add(read("35.0"));
        let StepParts { forward, backward, step } = mean.get().expect("two steps");
        let is = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
        assert!(is(forward, 0.0377) && is(backward, 0.08904) && is(step, 0.030), "{step}");
    }
}
