//! How long steps take in the course of a run: whether they became slower.

use std::time::{Duration, Instant};

/// Steps are taken together for at least this long and this many: checkpoints and evaluations lie between them.
const WINDOW: (Duration, u64) = (Duration::from_secs(10), 5);
/// Windows that say what is usual.
const FEWEST: usize = 5;
const KEPT: usize = 100;
/// Steps that take this many times as long, for so many windows in a row, are slow.
const SLOW: f64 = 1.5;
const IN_A_ROW: u32 = 3;

/// What became of the pace.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slower {
    /// Seconds of a step now.
    pub(crate) now: f64,
    /// Seconds it usually took.
    pub(crate) usual: f64,
}

/// Follows the pace.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    began: Option<(Instant, u64)>,
    /// Seconds of a step in each window.
    windows: Vec<f64>,
    slow: u32,
    is_told: bool,
}

impl Pace {
    /// A step was made; says once that steps became slower.
    pub(crate) fn step(&mut self, now: Instant, step: u64) -> Option<Slower> {
        let (began, first) = *self.began.get_or_insert((now, step));
        let (lasted, steps) = (now.duration_since(began), step.saturating_sub(first));
        if lasted < WINDOW.0 || steps < WINDOW.1 {
            return None;
        }
        self.began = Some((now, step));
        self.window(lasted.as_secs_f64() / steps as f64)
    }

    /// Begins a window anew: the run stood still for a reason that is known.
    pub(crate) fn interrupt(&mut self) {
        self.began = None;
    }

    fn window(&mut self, now: f64) -> Option<Slower> {
        let usual = (self.windows.len() >= FEWEST).then(|| {
            let mut sorted = self.windows.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        });
        if let Some(usual) = usual.filter(|usual| now > SLOW * usual) {
            // What is slow does not become usual.
            self.slow += 1;
            let is_news = self.slow >= IN_A_ROW
                && !std::mem::replace(&mut self.is_told, self.slow >= IN_A_ROW);
            return is_news.then_some(Slower { now, usual });
        }
        (self.slow, self.is_told) = (0, false);
        if self.windows.len() == KEPT {
            self.windows.remove(0);
        }
        self.windows.push(now);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_stay_slow_are_told_once() {
        let mut pace = Pace::default();
        let mut told = Vec::new();
        let seconds = [1.0; 8].into_iter().chain([2.0]).chain([1.1; 3]).chain([1.8; 6]);
        for seconds in seconds.chain([1.0, 1.0]).chain([3.0; 3]) {
            told.extend(pace.window(seconds));
        }
        assert_eq!(told, [Slower { now: 1.8, usual: 1.0 }, Slower { now: 3.0, usual: 1.0 }]);
    }

    #[test]
    fn a_window_has_enough_steps_and_time() {
        let mut pace = Pace::default();
        let began = Instant::now();
        for step in 0..100 {
            assert_eq!(pace.step(began + Duration::from_secs(step * 4), step), None);
        }
        assert_eq!(pace.windows.first(), Some(&4.0));
    }
}
