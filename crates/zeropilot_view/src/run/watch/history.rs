//! A value over the whole of a run, in a bounded number of points.

/// Enough for the widest terminal.
const POINTS: usize = 512;

/// Values in order; when there are many, neighbours are joined into their mean.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct History {
    points: Vec<f64>,
    /// How many values a point stands for, as a power of two.
    halvings: u32,
    /// Sum and number of the values that are no point yet.
    rest: (f64, u32),
    last: Option<f64>,
}

impl History {
    /// Adds a value; what is not finite is not drawn.
    pub fn push(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.last = Some(value);
        let (sum, count) = (self.rest.0 + value, self.rest.1 + 1);
        if count < 1 << self.halvings {
            self.rest = (sum, count);
            return;
        }
        self.rest = (0.0, 0);
        self.points.push(sum / f64::from(count));
        if self.points.len() == POINTS {
            self.points = self.points.chunks(2).map(mean).collect();
            self.halvings += 1;
        }
    }

    /// The last value.
    pub fn last(&self) -> Option<f64> {
        self.last
    }

    /// At most this many points, over all of the time.
    pub fn resampled(&self, most: usize) -> Vec<f64> {
        if most == 0 || self.points.len() <= most {
            return self.points.iter().copied().take(most).collect();
        }
        let at = |index: usize| index * self.points.len() / most;
        (0..most).map(|index| mean(&self.points[at(index)..at(index + 1)])).collect()
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_night_of_steps_keeps_its_shape_and_no_more_points() {
        let mut history = History::default();
        let steps = 1_000_000;
        for step in 0..steps {
            history.push(f64::from(step));
        }
        assert!(history.points.len() < POINTS);
        assert_eq!(history.last(), Some(f64::from(steps - 1)));
        let drawn = history.resampled(10);
        assert_eq!(drawn.len(), 10);
        for (index, value) in drawn.iter().enumerate() {
            // The mean of a tenth of a straight line lies in its middle.
            let expected = f64::from(steps) * (index as f64 + 0.5) / 10.0;
            assert!((value - expected).abs() < f64::from(steps) / 50.0, "{value} {expected}");
        }
    }

    #[test]
    fn few_values_are_drawn_as_they_are() {
        let mut history = History::default();
        [3.0, f64::NAN, 1.0].into_iter().for_each(|value| history.push(value));
        assert_eq!(history.resampled(9), [3.0, 1.0]);
        assert_eq!(history.resampled(0), [0.0; 0]);
    }
}
