//! Numbers over judged rows.

use zeropilot_step::conformal::median;

use crate::judgement::Judged;
use crate::row::Outcome;

/// Errors over some rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistics {
    /// Rows with a prediction and a measurement.
    pub count: usize,
    /// The median of the absolute errors.
    pub median_absolute: f64,
    /// The median of the errors: what is typically too much.
    pub median: f64,
    /// The share of rows within 15 %.
    pub within_15: f64,
    /// The share of rows whose measurement lies within the bounds of the prediction.
    pub within_bounds: f64,
    /// The error of largest size.
    pub worst: f64,
}

impl Statistics {
    /// Of these rows; nothing if none has an error.
    pub fn of<'j>(rows: impl Iterator<Item = &'j Judged<'j>>) -> Option<Self> {
        let judged: Vec<(f64, bool)> =
            rows.filter_map(|row| Some((row.error()?, row.is_within_bounds()?))).collect();
        let errors: Vec<f64> = judged.iter().map(|(error, _)| *error).collect();
        let absolute: Vec<f64> = errors.iter().map(|error| error.abs()).collect();
        let share = |count: usize| count as f64 / judged.len() as f64;
        Some(Self {
            count: judged.len(),
            median_absolute: median(absolute.clone())?,
            median: median(errors.clone())?,
            within_15: share(absolute.iter().filter(|error| **error <= 0.15).count()),
            within_bounds: share(judged.iter().filter(|(_, within)| *within).count()),
            worst: errors.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs()))?,
        })
    }
}

/// Runs that fitted or not against what was predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fits {
    /// Ran, as predicted.
    pub ran_as_predicted: usize,
    /// Ran, though predicted not to fit.
    pub ran_against: usize,
    /// Ran out of memory, as predicted.
    pub failed_as_predicted: usize,
    /// Ran out of memory, though predicted to fit.
    pub failed_against: usize,
}

impl Fits {
    /// Over the rows that say whether they fitted and whose GPUs are known.
    pub fn of<'j>(rows: impl Iterator<Item = &'j Judged<'j>>) -> Self {
        let mut fits = Self::default();
        for row in rows {
            let slot = match (row.row.outcome, row.predicted_to_fit()) {
                (_, None) => continue,
                (Outcome::Oom, Some(true)) => &mut fits.failed_against,
                (Outcome::Oom, Some(false)) => &mut fits.failed_as_predicted,
                (Outcome::Ok | Outcome::Fits, Some(true)) => &mut fits.ran_as_predicted,
                (Outcome::Ok | Outcome::Fits, Some(false)) => &mut fits.ran_against,
            };
            *slot += 1;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judgement::{Predicted, judge};
    use crate::row::{Row, rows};
    use zeropilot_units::Bytes;

    #[test]
    fn the_median_of_an_even_number_is_between() {
        assert_eq!(median(vec![4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    /// An invented run of 10 GiB on one A100 of 40 GB.
    fn invented(peak: f64, outcome: Outcome) -> Row {
        let known = rows().iter().find(|row| row.id == "mleng-013").unwrap();
        Row {
            peak_mem_gb: Some(peak),
            outcome,
            complete_memory: outcome == Outcome::Ok,
            gpu: Some("A100-40G".to_owned()),
            gpus: Some(1),
            ..known.clone()
        }
    }

    #[test]
    fn errors_are_of_the_prediction_over_the_measurement() {
        let runs: Vec<Row> = [8.0, 10.0, 16.0].map(|peak| invented(peak, Outcome::Ok)).into();
        let ten = Bytes(10 << 30);
        let judgement =
            judge(&runs, &|_| Ok(Predicted { allocated: ten, reserved: ten, device: ten }));
        // 10/8 − 1 = +25 %, 0, 10/16 − 1 = −37.5 %
        let statistics = Statistics::of(judgement.rows.iter()).unwrap();
        assert_eq!(statistics.count, 3);
        assert_eq!((statistics.median_absolute, statistics.median), (0.25, 0.0));
        assert_eq!(statistics.worst, -0.375);
        // Without another source there are no bounds but the prediction itself.
        assert_eq!((statistics.within_15 * 3.0, statistics.within_bounds * 3.0), (1.0, 1.0));
    }

    #[test]
    fn what_fits_is_told_from_what_does_not() {
        let runs = [
            invented(10.0, Outcome::Ok),
            invented(11.0, Outcome::Ok),
            invented(0.0, Outcome::Oom),
            invented(0.0, Outcome::Oom),
            invented(0.0, Outcome::Oom),
        ];
        let amounts = [10_u64, 50, 50, 10, 60];
        let next = std::cell::Cell::new(0);
        let judgement = judge(&runs, &|_| {
            let bytes = Bytes(amounts[next.get()] << 30);
            next.set(next.get() + 1);
            Ok(Predicted { allocated: bytes, reserved: bytes, device: bytes })
        });
        let expected =
            Fits { ran_as_predicted: 1, ran_against: 1, failed_as_predicted: 2, failed_against: 1 };
        assert_eq!(Fits::of(judgement.rows.iter()), expected);
    }
}
