//! Bounds that hold for the next run with a stated probability, from how far earlier ones lay from their predictions
//! (split conformal prediction).

/// The share of runs that should lie within the bounds.
pub const SHARE: f64 = 0.9;

/// Own runs that bounds can rest on alone: with fewer, not even the largest of their errors is exceeded by the next run in
/// as few as a tenth of all cases.
pub const ENOUGH: usize = 9;

/// Bounds of measured over predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factors {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// What bounds of the user's own runs rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnRuns {
    /// How many, every job once.
    pub runs: u64,
    /// Whether the bounds rest on them alone; otherwise they only widen others.
    pub decide: bool,
}

/// The smallest value that so many of the next draws should not exceed.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    let place = (share * (values.len() + 1) as f64).ceil() as usize;
    values.get(place.saturating_sub(1)).or(values.last()).copied().unwrap_or(0.0)
}

/// Bounds with what own runs add: from [`ENOUGH`] on their own, around the middle of them; before, the others, made wide
/// enough for them. The prediction itself stays within.
pub fn with_own(others: Factors, ratios: &[f64]) -> (Factors, Option<OwnRuns>) {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    if logs.is_empty() {
        return (others, None);
    }
    let decide = logs.len() >= ENOUGH;
    let factors = if decide {
        // Each is judged by the middle of all others, as the next run will be.
        let apart = |place: usize| {
            let mut rest = logs.clone();
            let own = rest.remove(place);
            (own - median(rest).unwrap_or(0.0)).abs()
        };
        let mut distances: Vec<f64> = (0..logs.len()).map(apart).collect();
        let (middle, most) = (median(logs).unwrap_or(0.0), quantile(&mut distances, SHARE));
        Factors { low: (middle - most).exp().min(1.0), high: (middle + most).exp().max(1.0) }
    } else {
        let least = ratios.iter().copied().fold(others.low, f64::min);
        Factors { low: least, high: ratios.iter().copied().fold(others.high, f64::max) }
    };
    (factors, Some(OwnRuns { runs: ratios.len() as u64, decide }))
}

/// The middle value, or the mean of the two in the middle.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (below, above) =
        (values.get((values.len().checked_sub(1)?) / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*below, *above))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: Factors = Factors { low: 0.8, high: 1.25 };

    /// Of nineteen values the largest is exceeded by the next one in one of twenty cases.
    #[test]
    fn the_quantile_counts_the_draw_to_come() {
        let mut values: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(quantile(&mut values, 0.95), 19.0);
        assert_eq!(quantile(&mut values, 0.5), 10.0);
        assert_eq!(quantile(&mut [], 0.5), 0.0);
    }

    #[test]
    fn few_own_runs_widen_and_never_narrow() {
        assert_eq!(with_own(PUBLISHED, &[]), (PUBLISHED, None));
        let (factors, own) = with_own(PUBLISHED, &[1.0, 1.4]);
        assert_eq!(factors, Factors { low: 0.8, high: 1.4 });
        assert_eq!(own, Some(OwnRuns { runs: 2, decide: false }));
        assert_eq!(with_own(PUBLISHED, &[1.01; ENOUGH - 1]).0, PUBLISHED);
    }

    /// The middle is 1.05; without it the middle of the rest is between its neighbours, so that the farthest are 1.01 and
    /// 1.09, whose distance from the middle of the other eight decides.
    #[test]
    fn enough_own_runs_decide_and_keep_the_prediction_inside() {
        let ratios: Vec<f64> = (1..=9).map(|percent| 1.0 + f64::from(percent) / 100.0).collect();
        let (factors, own) = with_own(PUBLISHED, &ratios);
        assert_eq!(own, Some(OwnRuns { runs: 9, decide: true }));
        assert_eq!(factors.low, 1.0, "the prediction stays inside");
        // Without 1.01 the middle lies between 1.05 and 1.06.
        let most = f64::midpoint(1.05_f64.ln(), 1.06_f64.ln()) - 1.01_f64.ln();
        assert!((factors.high - 1.05 * most.exp()).abs() < 1e-12, "{factors:?}");
    }

    /// Nine draws of the same spread hold the tenth nine times in ten; counted over every way to leave one of 200 out.
    #[test]
    fn the_next_run_lies_inside_as_often_as_is_said() {
        let mut state = 7_u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as f64 / f64::from(u32::MAX >> 1) - 0.5) * 0.4
        };
        let mut inside = 0;
        for _ in 0..2000 {
            let ratios: Vec<f64> = (0..12).map(|_| draw().exp()).collect();
            let (factors, _) = with_own(PUBLISHED, &ratios[..11]);
            inside += u32::from((factors.low..=factors.high).contains(&ratios[11]));
        }
        assert!(inside >= 1780, "{inside} of 2000");
    }
}
