//! The bytes alive on one rank between the phases of a step.

use std::collections::BTreeMap;
use std::fmt;

use zeropilot_units::Bytes;

use super::base_optimizer::BaseOptimizer;
use super::precision::Wrapper;
use super::run::Run;
use super::{stage0, stage3, stage12};

/// What a persistent tensor is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// Parameters as the model built them.
    Parameters,
    /// Parameters that are not trained.
    FrozenParameters,
    /// Partitions of parameters that are not trained (stage 3).
    FrozenPartitions,
    /// Parameters in one flat buffer, or this rank's partition of it.
    FlatParameters,
    /// The same on the host.
    HostParameters,
    /// Small parameters that stay gathered (stage 3).
    PersistentParameters,
    /// The secondary copy of hpZ.
    SecondaryPartitions,
    /// The copy the optimizer updates.
    Master,
    /// Its gradient, where the optimizer is offloaded.
    MasterGradients,
    /// First Adam moment.
    FirstMoment,
    /// Second Adam moment.
    SecondMoment,
    /// Step counters of PyTorch's optimizer.
    StepCounters,
    /// Full gradients held by the parameters.
    ParameterGradients,
    /// Reduced gradients of this rank, in the model's format.
    AveragedGradients,
    /// Reduced gradients of this rank in one flat fp32 buffer.
    FlatGradients,
    /// The full fp32 gradient buffer of the bf16 optimizer.
    FullGradients,
    /// Gradient partitions (stage 3).
    GradientPartitions,
    /// fp32 gradients that a reduction left referenced (stage 1).
    LeftoverGradients,
    /// The bucket that gradients are reduced from.
    ReduceBucket,
    /// Where updated 16-bit weights wait on the host.
    HostStaging,
    /// A host buffer for one gradient.
    TemporaryGradientHost,
    /// A device buffer for one gradient.
    TemporaryGradientDevice,
    /// Gradients added up on the host between micro steps.
    HostAccumulation,
    /// Parameters gathered for a module (stage 3).
    GatheredParameters,
    /// A buffer in which a group of parameters is gathered before each gets its own copy (stage 3).
    GatherBuffer,
    /// Parameters as the caller built them, before the engine takes them over.
    CallerParameters,
    /// Gradients of parameters as backward makes them.
    Gradients,
    /// Copies of gradients while they are reduced.
    ReductionCopies,
    /// Copies of gradients from which their norm is taken.
    NormCopies,
    /// Gradients joined or cast for the optimizer.
    OptimizerGradients,
    /// Temporaries of the base optimizer.
    OptimizerTemporaries,
    /// Copies made while the engine builds its buffers.
    BuildCopies,
    /// What the communication library holds besides the tensors it is given.
    CommunicationCopies,
    /// Temporaries inside one kernel, which no tensor stands for.
    KernelTemporaries,
    /// Weights of models that only run, each with an engine of its own.
    OtherModels,
    /// What forward computes and keeps.
    Activations,
    /// Logits, log-probabilities and the loss.
    Logits,
    /// Gradients of activations, and temporaries of backward.
    ActivationGradients,
}

impl Category {
    /// How many there are.
    pub(super) const COUNT: usize = Self::ActivationGradients as usize + 1;

    /// Every category.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Parameters,
        Self::FrozenParameters,
        Self::FrozenPartitions,
        Self::FlatParameters,
        Self::HostParameters,
        Self::PersistentParameters,
        Self::SecondaryPartitions,
        Self::Master,
        Self::MasterGradients,
        Self::FirstMoment,
        Self::SecondMoment,
        Self::StepCounters,
        Self::ParameterGradients,
        Self::AveragedGradients,
        Self::FlatGradients,
        Self::FullGradients,
        Self::GradientPartitions,
        Self::LeftoverGradients,
        Self::ReduceBucket,
        Self::HostStaging,
        Self::TemporaryGradientHost,
        Self::TemporaryGradientDevice,
        Self::HostAccumulation,
        Self::GatheredParameters,
        Self::GatherBuffer,
        Self::CallerParameters,
        Self::Gradients,
        Self::ReductionCopies,
        Self::NormCopies,
        Self::OptimizerGradients,
        Self::OptimizerTemporaries,
        Self::BuildCopies,
        Self::CommunicationCopies,
        Self::KernelTemporaries,
        Self::OtherModels,
        Self::Activations,
        Self::Logits,
        Self::ActivationGradients,
    ];
}

impl Category {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::FrozenParameters => "frozen_parameters",
            Self::FrozenPartitions => "frozen_partitions",
            Self::FlatParameters => "flat_parameters",
            Self::HostParameters => "host_parameters",
            Self::PersistentParameters => "persistent_parameters",
            Self::SecondaryPartitions => "secondary_partitions",
            Self::Master => "master_weights",
            Self::MasterGradients => "master_gradients",
            Self::FirstMoment => "first_moment",
            Self::SecondMoment => "second_moment",
            Self::StepCounters => "step_counters",
            Self::ParameterGradients => "parameter_gradients",
            Self::AveragedGradients => "averaged_gradients",
            Self::FlatGradients => "flat_gradients",
            Self::FullGradients => "full_gradients",
            Self::GradientPartitions => "gradient_partitions",
            Self::LeftoverGradients => "leftover_gradients",
            Self::ReduceBucket => "reduce_bucket",
            Self::HostStaging => "host_staging",
            Self::TemporaryGradientHost => "temporary_gradient_host",
            Self::TemporaryGradientDevice => "temporary_gradient_device",
            Self::HostAccumulation => "host_accumulation",
            Self::GatheredParameters => "gathered_parameters",
            Self::GatherBuffer => "gather_buffer",
            Self::CallerParameters => "caller_parameters",
            Self::Gradients => "gradients",
            Self::ReductionCopies => "reduction_copies",
            Self::NormCopies => "norm_copies",
            Self::OptimizerGradients => "optimizer_gradients",
            Self::OptimizerTemporaries => "optimizer_temporaries",
            Self::BuildCopies => "build_copies",
            Self::CommunicationCopies => "communication_copies",
            Self::KernelTemporaries => "kernel_temporaries",
            Self::OtherModels => "other_models",
            Self::Activations => "activations",
            Self::Logits => "logits",
            Self::ActivationGradients => "activation_gradients",
        }
    }
}

/// Where a tensor lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// The accelerator.
    Device,
    /// Page-locked host memory.
    Pinned,
    /// Ordinary host memory.
    Host,
}

impl Place {
    /// Every place.
    pub const ALL: [Self; 3] = [Self::Device, Self::Pinned, Self::Host];

    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Pinned => "pinned",
            Self::Host => "host",
        }
    }
}

/// Everything alive at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rest(BTreeMap<(Category, Place), u64>);

impl Rest {
    pub(crate) fn add(&mut self, category: Category, place: Place, bytes: u64) {
        if bytes > 0 {
            *self.0.entry((category, place)).or_default() += bytes;
        }
    }

    pub(super) fn add_all(&mut self, parts: Vec<(Category, u64)>, place: Place) {
        parts.into_iter().for_each(|(category, bytes)| self.add(category, place, bytes));
    }

    /// Before and after the first step, given what is there without the optimizer's states.
    pub(super) fn around_first_step(
        mut self,
        states: &Self,
        optimizer: BaseOptimizer,
    ) -> (Self, Self) {
        let mut after = self.clone();
        after.add_rest(states);
        if optimizer.begins_with_states() {
            self.add_rest(states);
        }
        (self, after)
    }

    pub(crate) fn add_rest(&mut self, other: &Self) {
        other.iter().for_each(|(category, place, bytes)| self.add(category, place, bytes.0));
    }

    /// What is left without another.
    pub fn minus(&self, other: &Self) -> Self {
        let mut left = Self::default();
        for (category, place, bytes) in self.iter() {
            left.add(category, place, bytes.saturating_sub(other.of_at(category, place)).0);
        }
        left
    }

    /// All but what is in a place.
    pub fn without_place(mut self, place: Place) -> Self {
        self.0.retain(|(_, other), _| *other != place);
        self
    }

    /// All but a category.
    pub fn without(mut self, category: Category) -> Self {
        self.0.retain(|(other, _), _| *other != category);
        self
    }

    /// Bytes of a category, wherever they are.
    pub fn of(&self, category: Category) -> Bytes {
        Bytes(self.0.iter().filter(|((c, _), _)| *c == category).map(|(_, bytes)| bytes).sum())
    }

    /// Bytes of a category in a place.
    pub fn of_at(&self, category: Category, place: Place) -> Bytes {
        Bytes(self.0.get(&(category, place)).copied().unwrap_or(0))
    }

    /// Bytes in a place.
    pub fn at(&self, place: Place) -> Bytes {
        Bytes(self.0.iter().filter(|((_, p), _)| *p == place).map(|(_, bytes)| bytes).sum())
    }

    /// All of it.
    pub fn total(&self) -> Bytes {
        Bytes(self.0.values().sum())
    }

    /// Category by category.
    pub fn iter(&self) -> impl Iterator<Item = (Category, Place, Bytes)> {
        self.0.iter().map(|((category, place), bytes)| (*category, *place, Bytes(*bytes)))
    }
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|(category, place, bytes)| {
            writeln!(f, "{category:?} {place:?} {}", bytes.0)
        })
    }
}

/// The three states a rank is in between phases, from the second step on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestStates {
    /// After `deepspeed.initialize`.
    pub after_init: Rest,
    /// After the backward pass of the last micro batch.
    pub after_backward: Rest,
    /// After the optimizer step.
    pub after_step: Rest,
}

impl RestStates {
    /// The same with what lies beside all the time.
    #[must_use]
    pub(crate) fn with(mut self, beside: &Rest) -> Self {
        for state in [&mut self.after_init, &mut self.after_backward, &mut self.after_step] {
            state.add_rest(beside);
        }
        self
    }

    /// For a run.
    pub fn of(run: &Run<'_>) -> Self {
        match Wrapper::of(run) {
            Wrapper::Bare | Wrapper::FlatMixed | Wrapper::PerTensorMixed => {
                stage0::rest_states(run)
            }
            Wrapper::Bf16 => stage12::bf16_rest_states(run),
            Wrapper::Partitioned => stage12::rest_states(run),
            Wrapper::Sharded => stage3::rest_states(run),
        }
    }
}
