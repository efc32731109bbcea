//! The same on fewer of the GPUs: where steps wait for links, fewer GPUs cost less for the same work.

use zeropilot_cluster::{Cluster, Layout};

use super::asking::Asker;
use super::{Fitting, Plan, PlanError, Task, plan_with};

/// A plan on some of the GPUs.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Those GPUs.
    pub cluster: Cluster,
    /// What is best on them.
    pub plan: Plan,
}

impl Offer {
    /// Seconds of GPUs that a sequence costs; `None` if nothing fits.
    pub fn gpu_seconds(&self) -> Option<f64> {
        self.plan.fitting.first().and_then(Fitting::seconds_per_sequence)
    }
}

/// A share of time or cost below which two strategies are alike: predictions are off by more.
pub const NEGLIGIBLE: f64 = 0.05;

/// Plans on ever more of the GPUs.
#[derive(Debug, Clone)]
pub struct Offers {
    /// On some of them.
    pub fewer: Vec<Offer>,
    /// On all.
    pub all: Offer,
}

impl Offers {
    /// By the number of GPUs.
    pub fn each(&self) -> impl DoubleEndedIterator<Item = &Offer> {
        self.fewer.iter().chain([&self.all])
    }

    /// The one on the most GPUs that costs no more than the cheapest, but for [`NEGLIGIBLE`]; that on all of them if
    /// nothing fits anywhere.
    pub fn cheapest(&self) -> &Offer {
        let least = self.each().filter_map(Offer::gpu_seconds).fold(f64::INFINITY, f64::min);
        let is_cheap = |offer: &&Offer| {
            offer.gpu_seconds().is_some_and(|cost| cost <= least * (1.0 + NEGLIGIBLE))
        };
        self.each().rev().find(is_cheap).unwrap_or(&self.all)
    }
}

/// Plans on ever more of the GPUs, by doubling. A number that a global batch cannot be spread over is left out.
///
/// # Errors
///
/// If there is no plan on all of them, or the speed of the GPUs is unknown.
pub fn offers(task: &Task<'_>) -> Result<Offers, PlanError> {
    if task.cluster.gpus.device.accelerator().is_none() {
        return Err(PlanError::NoSpeed);
    }
    let mut known = Asker::new(task)?;
    let mut on = |layout| {
        let mut cluster = task.cluster.clone();
        cluster.gpus.layout = layout;
        let smaller = Task { cluster: &cluster, ..*task };
        let mut asker = known.about(&smaller);
        let plan = plan_with(&mut asker)?;
        known.learn_workloads(asker);
        Ok(Offer { cluster, plan })
    };
    let all = task.cluster.gpus.layout;
    let can_be_spread =
        |offer: &Result<Offer, PlanError>| !matches!(offer, Err(error) if error.is_of_this_size());
    Ok(Offers {
        fewer: fewer(all).map(&mut on).filter(can_be_spread).collect::<Result<_, _>>()?,
        all: on(all)?,
    })
}

/// Parts of a node, then whole nodes.
fn fewer(all: Layout) -> impl Iterator<Item = Layout> {
    let doubling = |most: u64| {
        std::iter::successors(Some(1), |number: &u64| number.checked_mul(2))
            .take_while(move |number| *number < most)
    };
    doubling(all.gpus_per_node)
        .map(move |gpus_per_node| Layout { nodes: 1, gpus_per_node, ..all })
        .chain(doubling(all.nodes).map(move |nodes| Layout { nodes, ..all }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(nodes: u64, gpus_per_node: u64) -> Vec<(u64, u64)> {
        fewer(Layout { nodes, gpus_per_node, stated: true })
            .map(|layout| (layout.nodes, layout.gpus_per_node))
            .collect()
    }

    #[test]
    fn numbers_double() {
        assert_eq!(sizes(1, 1), []);
        assert_eq!(sizes(1, 5), [(1, 1), (1, 2), (1, 4)]);
        assert_eq!(sizes(3, 4), [(1, 1), (1, 2), (1, 4), (2, 4)]);
    }
}
