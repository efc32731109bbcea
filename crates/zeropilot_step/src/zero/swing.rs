//! Memory that goes up and down between two events of the step program, told as one.

use super::rest::Category;
use crate::tape::Work;

/// Device memory that goes up and down while nothing else happens, told as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Swing {
    /// How far above its beginning it rises at most.
    pub rise: u64,
    /// What each category is above or below its beginning at that point.
    pub at_rise: [i64; Swing::CATEGORIES.len()],
    /// And at the end.
    pub net: [i64; Swing::CATEGORIES.len()],
    /// What kernels do meanwhile.
    pub work: Work,
}

impl Swing {
    /// The categories a swing consists of.
    pub const CATEGORIES: [Category; 4] = [
        Category::Activations,
        Category::Logits,
        Category::ActivationGradients,
        Category::Gradients,
    ];

    /// The total at its end, above or below its beginning.
    pub(super) fn end(&self) -> i64 {
        self.net.iter().sum()
    }

    /// This one and then another, as one.
    #[must_use]
    pub fn then(&self, next: &Self) -> Self {
        let add = |more: &[i64; Self::CATEGORIES.len()]| {
            std::array::from_fn(|index| self.net[index] + more[index])
        };
        let mut work = self.work;
        work += next.work;
        let highest = i64::try_from(next.rise).unwrap_or(i64::MAX).saturating_add(self.end());
        // Of two equally high points the first counts.
        match u64::try_from(highest) {
            Ok(rise) if next.rise > 0 && rise > self.rise => {
                Self { rise, at_rise: add(&next.at_rise), net: add(&next.net), work }
            }
            _ => Self { net: add(&next.net), work, ..*self },
        }
    }

    /// Whether it leaves no trace.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn swing(changes: &[(usize, i64)]) -> Swing {
        let one = |&(category, bytes): &(usize, i64)| {
            let mut net = [0; 4];
            net[category] = bytes;
            let rise = u64::try_from(bytes).unwrap_or(0);
            let at_rise = if rise > 0 { net } else { [0; 4] };
            Swing { rise, at_rise, net, ..Swing::default() }
        };
        changes.iter().map(one).fold(Swing::default(), |all, next| all.then(&next))
    }

    #[test]
    fn the_first_of_two_equal_peaks_counts() {
        // 10, 25, 15, 25: the second 25 is of another category.
        let all = swing(&[(0, 10), (1, 15), (1, -10), (2, 10)]);
        let (at_rise, net) = ([10, 15, 0, 0], [10, 5, 10, 0]);
        assert_eq!(all, Swing { rise: 25, at_rise, net, ..Swing::default() });
    }

    #[test]
    fn what_goes_down_and_comes_back_leaves_no_trace() {
        assert!(swing(&[(0, -10), (0, 10)]).is_nothing());
        assert!(!swing(&[(0, 10), (0, -10)]).is_nothing());
    }

    #[test]
    fn joining_does_not_depend_on_where_it_is_cut() {
        let changes = [(0, 7), (1, 9), (0, -3), (2, 20), (1, -9), (2, -5), (3, 12), (2, -15)];
        let whole = swing(&changes);
        for cut in 0..=changes.len() {
            assert_eq!(swing(&changes[..cut]).then(&swing(&changes[cut..])), whole, "{cut}");
        }
    }
}
