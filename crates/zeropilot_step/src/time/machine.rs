//! What a rank of a cluster is capable of.

use zeropilot_cluster::{Cluster, Cost, Fabric, Format, Outlook, Pace, Pattern};
use zeropilot_config::settings::Precision;

use crate::tape::Work;
use crate::zero::{BaseOptimizer, Collective, CollectiveKind, Dtypes};

/// Speeds of a rank and its links.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Of the rank.
    pub pace: Pace,
    /// Of its links.
    pub fabric: Fabric,
}

impl Machine {
    /// Of a rank of a cluster; nothing if its accelerator, or its speed in this format, is not known.
    #[must_use]
    pub fn of(cluster: &Cluster, precision: Precision, outlook: Outlook) -> Option<Self> {
        let format = match precision {
            Precision::Fp32 => Format::Fp32,
            Precision::Fp16 { .. } => Format::Fp16,
            Precision::Bf16 { .. } => Format::Bf16,
        };
        let pace = Pace::of(cluster, format, outlook)?;
        Some(Self { pace, fabric: Fabric::of(cluster, outlook) })
    }

    /// Seconds of kernels, those of backward or others.
    pub(super) fn compute(&self, work: Work, is_backward: bool) -> f64 {
        let rate = if is_backward { self.pace.backward_products } else { self.pace.products };
        (work.products as f64 + work.depths as f64 * self.pace.last_wave) / rate
            + work.attention as f64 / self.pace.attention
            + work.moved as f64 / self.pace.memory
    }

    /// Seconds of the host to start them.
    pub(super) fn start(&self, work: Work) -> f64 {
        f64::from(work.kernels) * self.pace.kernel
    }

    /// What a call among neighbours, or among all, costs.
    #[must_use]
    pub fn call(&self, call: Collective) -> Cost {
        Self::cost(&self.fabric, call)
    }

    /// What a call costs over some links.
    pub(super) fn cost(fabric: &Fabric, call: Collective) -> Cost {
        let pattern = match call.kind {
            CollectiveKind::AllGather => Pattern::AllGather,
            CollectiveKind::ReduceScatter => Pattern::ReduceScatter,
            CollectiveKind::AllReduce => Pattern::AllReduce,
            CollectiveKind::Reduce { .. } => Pattern::Reduce,
            CollectiveKind::AllToAll => Pattern::AllToAll,
        };
        fabric.cost(pattern, call.bytes(), call.ranks)
    }

    /// Seconds of an update on the device: gradients are read for the norm and cast, then read with master and
    /// moments, which are written back with the model's copy.
    pub(super) fn update(&self, elements: u64, dtypes: Dtypes, optimizer: BaseOptimizer) -> f64 {
        let Dtypes { model, accumulation, master, moment, .. } = dtypes;
        let gradient = 2 * accumulation + 2 * master;
        let states = moments(optimizer) * moment;
        // PyTorch's own goes over everything several times.
        let passes = if optimizer == BaseOptimizer::TorchAdam { 3 } else { 1 };
        let bytes = gradient + passes * 2 * (master + states) + model;
        elements as f64 * bytes as f64 / self.pace.update
    }

    /// Bytes that are read from a disk and written to it for an element: master, its gradient, moments.
    pub(super) fn disk_bytes(dtypes: Dtypes, optimizer: BaseOptimizer) -> u64 {
        2 * dtypes.master + moments(optimizer) * dtypes.moment
    }
}

/// Moments an optimizer keeps for every element.
fn moments(optimizer: BaseOptimizer) -> u64 {
    match optimizer {
        BaseOptimizer::FusedAdam
        | BaseOptimizer::TorchAdam
        | BaseOptimizer::CpuAdam
        | BaseOptimizer::EightBitAdam => 2,
        BaseOptimizer::Lion
        | BaseOptimizer::CpuLion
        | BaseOptimizer::Adagrad
        | BaseOptimizer::CpuAdagrad
        | BaseOptimizer::Adafactor
        | BaseOptimizer::Momentum => 1,
        BaseOptimizer::Sgd => 0,
    }
}
