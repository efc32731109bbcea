//! What lies on a GPU beside tensors: named terms with bounds and sources.

use zeropilot_cluster::{Cluster, MeasuredMemory, Vendor};
use zeropilot_units::{Bytes, Estimate};

use super::facts::{Bounds, FACTS, Library, MatrixLibrary, Observation, Workspace};

/// What a term is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TermKind {
    /// The driver's state of the process and the kernels it has loaded.
    Context,
    /// Buffers of the communication library.
    Communicators,
    /// Scratch memory of the matrix library.
    MatrixWorkspace,
}

impl TermKind {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Context => "context",
            Self::Communicators => "communicators",
            Self::MatrixWorkspace => "matrix_workspace",
        }
    }
}

/// Who counts a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// PyTorch: it is part of what is allocated and reserved.
    ByPyTorch,
    /// Only the driver.
    ByDriver,
}

/// Memory that is no tensor of the step.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// What it is.
    pub kind: TermKind,
    /// How much.
    pub bytes: Estimate,
    /// Who counts it.
    pub counted: Counted,
    /// The figures it rests on.
    pub observations: Vec<Observation>,
    /// Where the rest of it is printed.
    pub sources: Vec<String>,
}

/// What decides how much lies beside tensors.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Who makes the GPUs, if that is known.
    pub vendor: Option<Vendor>,
    /// `8.0`, `gfx942`.
    pub capability: Option<String>,
    /// Whether GPUs of a node have a link that is faster than PCIe.
    pub fast_link: bool,
    /// Nodes.
    pub nodes: u64,
    /// Ranks.
    pub ranks: u64,
    /// Process groups beyond those every DeepSpeed job has: of hpZ, of MiCS, of experts.
    pub more_groups: u64,
    /// What was measured on such a machine.
    pub measured: Option<MeasuredMemory>,
}

impl Machine {
    /// The machine of a cluster, for a job with so many process groups of its own.
    pub fn new(cluster: &Cluster, more_groups: u64) -> Self {
        let accelerator = cluster.gpus.device.accelerator();
        Self {
            vendor: accelerator.map(|card| card.vendor),
            capability: accelerator.and_then(|card| card.compute_capability.clone()),
            // Most servers people train on have one; a card that is not known is counted with its buffers.
            fast_link: accelerator.is_none_or(|card| card.fast_link.is_some()),
            nodes: cluster.gpus.layout.nodes,
            ranks: cluster.world_size(),
            more_groups,
            measured: cluster.measured().map(|measured| measured.memory),
        }
    }

    /// Everything that lies on a GPU beside tensors.
    pub fn terms(&self) -> Vec<Term> {
        let mut terms = vec![self.context()];
        terms.extend(self.communicators());
        terms.push(self.matrix_workspace());
        terms
    }

    /// Bytes PyTorch keeps for one handle of the matrix library.
    pub fn workspace_per_handle(&self) -> Bytes {
        Bytes(self.workspace().bytes)
    }

    fn is(&self, capabilities: &[String]) -> bool {
        let own = self.capability.as_ref();
        capabilities.is_empty() || own.is_some_and(|own| capabilities.contains(own))
    }

    fn context(&self) -> Term {
        if let Some(bytes) = self.measured.and_then(|measured| measured.context_bytes) {
            return measured_term(TermKind::Context, Estimate::exact(Bytes(bytes)));
        }
        let row = FACTS.context.iter().find(|row| self.is(&row.capabilities));
        let bounds = &row.expect("the last row is for every GPU").bounds;
        by_driver(TermKind::Context, bounds.estimate(), bounds, Vec::new())
    }

    fn communicators(&self) -> Option<Term> {
        if self.ranks < 2 {
            return None;
        }
        let library = match self.vendor {
            Some(Vendor::Nvidia) | None => Library::Nccl,
            Some(Vendor::Amd) => Library::Rccl,
            Some(_) => Library::Other,
        };
        let row = FACTS.communicator.iter().find(|row| {
            row.library == library
                && row.fast_link.is_none_or(|fast_link| fast_link == self.fast_link)
                && row.nodes.covers(self.nodes)
                && row.ranks.covers(self.ranks)
        })?;
        let count = &FACTS.communicators;
        let measured = self.measured.filter(|_| self.nodes == 1);
        if let Some(bytes) = measured.and_then(|measured| measured.communicator_bytes) {
            let bytes = count.of(Estimate::exact(Bytes(bytes)), self.more_groups);
            return Some(measured_term(TermKind::Communicators, bytes));
        }
        let bytes = count.of(row.bounds.estimate(), self.more_groups);
        let sources = vec![count.source.clone()];
        Some(by_driver(TermKind::Communicators, bytes, &row.bounds, sources))
    }

    fn workspace(&self) -> &'static Workspace {
        let library = match self.vendor {
            Some(Vendor::Amd) => MatrixLibrary::Hipblas,
            _ => MatrixLibrary::Cublas,
        };
        let mut rows = FACTS.matrix_workspace.iter().filter(|row| row.library == library);
        let row = rows.find(|row| self.is(&row.capabilities));
        row.expect("each library has a row for every GPU")
    }

    fn matrix_workspace(&self) -> Term {
        let row = self.workspace();
        let (bytes, before) = (Bytes(row.bytes), Bytes(row.before.unwrap_or(row.bytes)));
        let each = Estimate::new(before.min(bytes), bytes, before.max(bytes));
        let count = &FACTS.matrix_workspace_handles;
        Term {
            kind: TermKind::MatrixWorkspace,
            bytes: count.of(each, 0),
            counted: Counted::ByPyTorch,
            observations: Vec::new(),
            sources: vec![row.source.clone(), count.source.clone()],
        }
    }
}

/// What a user measured rests on nothing that was published.
fn measured_term(kind: TermKind, bytes: Estimate) -> Term {
    let counted = Counted::ByDriver;
    Term { kind, bytes, counted, observations: Vec::new(), sources: Vec::new() }
}

fn by_driver(kind: TermKind, bytes: Estimate, bounds: &Bounds, sources: Vec<String>) -> Term {
    let observations = bounds.observations.clone();
    Term { kind, bytes, counted: Counted::ByDriver, observations, sources }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(gpus: &str) -> Machine {
        Machine::new(&Cluster::new(gpus.parse().unwrap()), 0)
    }

    fn mib(machine: &Machine, kind: TermKind) -> Option<(u64, u64, u64)> {
        let term = machine.terms().into_iter().find(|term| term.kind == kind)?;
        let [low, expected, high] =
            [term.bytes.low(), term.bytes.expected(), term.bytes.high()].map(|bytes| bytes.0 >> 20);
        Some((low, expected, high))
    }

    #[test]
    fn every_card_has_its_terms_and_every_term_a_source_or_a_wide_bound() {
        for card in zeropilot_cluster::catalogue::accelerators() {
            for gpus in [card.slug(), format!("8x{}", card.slug()), format!("4x8x{}", card.slug())]
            {
                for term in machine(&gpus).terms() {
                    let known = !term.observations.is_empty() || !term.sources.is_empty();
                    let wide = term.bytes.high().0 > 2 * term.bytes.expected().0;
                    assert!(known || wide, "{gpus}: {term:?}");
                }
            }
        }
    }

    #[test]
    fn one_rank_has_no_communicator() {
        assert_eq!(mib(&machine("A100-80G"), TermKind::Communicators), None);
    }

    /// Two communicators are expected (the world and DeepSpeed's copy of it), one at least.
    #[test]
    fn communicators_grow_with_the_link_and_the_nodes() {
        let kind = TermKind::Communicators;
        assert_eq!(mib(&machine("2xA100-80G"), kind), Some((342, 2 * 440, 2 * 544)));
        assert_eq!(mib(&machine("8xA100-80G"), kind), Some((380, 2 * 540, 2 * 688)));
        assert_eq!(mib(&machine("8x4090"), kind), Some((24, 2 * 100, 2 * 200)));
        assert_eq!(mib(&machine("4x8xH100"), kind), Some((392, 2 * 800, 2 * 1600)));
        let hierarchical = Machine { more_groups: 1, ..machine("8xA100-80G") };
        assert_eq!(mib(&hierarchical, kind), Some((2 * 380, 3 * 540, 3 * 688)));
    }

    #[test]
    fn hopper_keeps_a_larger_workspace() {
        assert_eq!(machine("H100").workspace_per_handle(), Bytes(32 << 20));
        // :4096:2:16:8 = 2 × 4 MiB + 8 × 16 KiB
        assert_eq!(machine("A100-80G").workspace_per_handle(), Bytes((8 << 20) + (128 << 10)));
        assert_eq!(machine("44GB").workspace_per_handle(), Bytes(8_519_680));
        assert_eq!(machine("MI300X").workspace_per_handle(), Bytes(128 << 20));
    }
}
