//! Whether the faster of two runs is predicted to be the faster.

use super::Judged;

/// Pairs of runs on the same hardware.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// Pairs whose measurements differ enough.
    pub pairs: usize,
    /// Of those the ones predicted in their order.
    pub right: usize,
}

impl Order {
    /// The share that is right.
    pub fn share(&self) -> Option<f64> {
        (self.pairs > 0).then(|| self.right as f64 / self.pairs as f64)
    }
}

/// A pair is compared if it differs by more than this.
const DIFFERENCE: f64 = 1.1;

/// Over pairs of the same source, model, GPU and number of GPUs.
pub fn order(judged: &[Judged<'_>]) -> Order {
    let mut order = Order::default();
    for (index, one) in judged.iter().enumerate() {
        for other in &judged[index + 1..] {
            let (a, b) = (one.run, other.run);
            let is_same = a.source() == b.source()
                && a.row.model == b.row.model
                && a.row.gpu == b.row.gpu
                && a.row.gpus == b.row.gpus;
            let ratio = a.measured / b.measured;
            if !is_same || ratio.max(1.0 / ratio) <= DIFFERENCE {
                continue;
            }
            order.pairs += 1;
            order.right += usize::from((ratio > 1.0) == (one.predicted > other.predicted));
        }
    }
    order
}
