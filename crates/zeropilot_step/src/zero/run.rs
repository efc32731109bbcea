//! What must be known about a run before its memory can be computed.

use serde::Deserialize;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::{DataType, Precision, Stage, Zero};
use zeropilot_units::{ElementSize, Elements};

use super::base_optimizer::BaseOptimizer;
use super::precision::Dtypes;
use super::rest::Place;

/// One parameter, as the optimizer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its size on this rank.
    pub elements: Elements,
    /// Ranks that have a part each; one if every rank has all of it.
    pub parts: u64,
    /// Its element, if not the model's: adapters on a base that was built partitioned stay in 32 bits, quantized
    /// weights are packed bytes.
    pub element: Option<ElementSize>,
    /// Whether it is trained.
    pub trainable: bool,
    /// The optimizer's parameter group it belongs to; frozen ones belong to none that matters.
    pub group: usize,
}

/// What ranks run on, as far as it decides which copies exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Backend {
    /// GPUs and NCCL: host and device memory are apart, so what is offloaded is copied to the device for use; the
    /// library works in the tensors it is given.
    #[default]
    Nccl,
    /// CPUs and Gloo: host and device are one; the library copies the input of a reduce-scatter.
    Gloo,
}

/// Who keeps weights, gradients and optimizer states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// DeepSpeed, as its config says.
    #[default]
    DeepSpeed,
    /// PyTorch alone: the optimizer updates the parameters as they are, states and gradients have their format, and
    /// several ranks average gradients in the buckets of `DistributedDataParallel`.
    PyTorch,
}

/// How the model comes to be before the engine takes it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// Under `zero.Init`: it never exists whole.
    Partitioned,
    /// Every rank builds or loads all of it on the host, with elements of this size.
    Whole(ElementSize),
    /// Every rank loads all of it straight to its GPU, as transformers loads a quantized model.
    OnDevice(ElementSize),
}

/// One rank of a training run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    /// Parameters in `named_parameters` order, tied weights once.
    pub parameters: &'a [Parameter],
    /// Indices of the trainable parameters in the order in which backward completes their gradients.
    pub gradient_order: &'a [usize],
    /// Who keeps the states.
    pub engine: Engine,
    /// The ZeRO settings.
    pub zero: &'a Zero,
    /// The model's number format.
    pub precision: Precision,
    /// What gradients are added up in, if not the model's format.
    pub accumulation_type: Option<DataType>,
    /// What gradients are sent in, if not the model's format.
    pub communication_type: Option<DataType>,
    /// The optimizer.
    pub optimizer: BaseOptimizer,
    /// Micro batches per step.
    pub accumulation_steps: u64,
    /// The engine that runs it.
    pub version: EngineVersion,
    /// Number of ranks that ZeRO shards over: all, or one of each group that shares layers.
    pub world: u64,
    /// Which of them.
    pub rank: u64,
    /// How many neighbours share a sequence; one where every rank has whole sequences.
    pub sequence_ranks: u64,
    /// How many neighbours share every layer; one where every rank has whole layers.
    pub tensor_ranks: u64,
    /// Which of them this is.
    pub tensor_rank: u64,
}

impl Run<'_> {
    /// Whether gradients are copied into buckets; in stages 1 and 2 an offloaded optimizer forces it.
    pub(crate) fn contiguous_gradients(&self) -> bool {
        let forced = self.zero.stage != Stage::Three && self.zero.offload_optimizer.is_some();
        self.zero.contiguous_gradients || forced
    }

    /// Where an offloaded optimizer's buffers for the device live: pinned where the config asks for it.
    pub(super) fn staging_place(&self) -> Place {
        match &self.zero.offload_optimizer {
            Some(offload) if offload.pin_memory => Place::Pinned,
            Some(_) => Place::Host,
            None => Place::Device,
        }
    }

    /// Bytes of an element of the model.
    pub(super) fn model_element(&self) -> u64 {
        Dtypes::of(self).model
    }

    /// Bytes of an element of a parameter.
    pub(super) fn element(&self, parameter: usize) -> u64 {
        let own = self.parameters[parameter].element;
        own.map_or_else(|| self.model_element(), ElementSize::bytes)
    }

    /// Bytes of what `elements` gives of every parameter that is trained or not.
    pub(super) fn bytes_of(&self, trainable: bool, elements: impl Fn(u64) -> u64) -> u64 {
        let model = Dtypes::of(self).model;
        let chosen = self.parameters.iter().filter(|parameter| parameter.trainable == trainable);
        chosen.map(|p| elements(p.elements.0) * p.element.map_or(model, ElementSize::bytes)).sum()
    }

    /// Trained elements of each size of element.
    pub(super) fn trained_by_element(&self) -> impl Iterator<Item = (u64, u64)> {
        let of = |element: u64| {
            let own = (0..self.parameters.len())
                .filter(|&p| self.parameters[p].trainable && self.element(p) == element);
            (element, own.map(|p| self.parameters[p].elements.0).sum())
        };
        [2, 4].map(of).into_iter()
    }

    /// Number of parameter groups with a trainable parameter.
    pub(super) fn groups(&self) -> usize {
        self.parameters.iter().filter(|p| p.trainable).map(|p| p.group + 1).max().unwrap_or(0)
    }

    /// Sizes of the trainable parameters of a group, in order.
    pub(super) fn group(&self, group: usize) -> impl Iterator<Item = u64> {
        self.parameters
            .iter()
            .filter(move |p| p.trainable && p.group == group)
            .map(|p| p.elements.0)
    }

    /// Indices of the trainable parameters of a group, in order.
    pub(super) fn group_indices(&self, group: usize) -> impl Iterator<Item = usize> {
        let members = self.parameters.iter().enumerate();
        members.filter(move |(_, p)| p.trainable && p.group == group).map(|(index, _)| index)
    }

    /// By parameter, whether backward gives it a gradient: an unused one, as the pooling head of a vision tower, gets
    /// none.
    pub(super) fn has_gradient(&self) -> Vec<bool> {
        let mut has_gradient = vec![false; self.parameters.len()];
        self.gradient_order.iter().for_each(|&index| has_gradient[index] = true);
        has_gradient
    }

    /// Sizes of all trainable parameters, group by group.
    pub(super) fn trainable(&self) -> impl Iterator<Item = u64> {
        (0..self.groups()).flat_map(|group| self.group(group))
    }

    /// Bytes of the frozen parameters, whole.
    pub(super) fn frozen_bytes(&self) -> u64 {
        self.bytes_of(false, |size| size)
    }
}
