//! The parts a GPU's memory is shown in: categories of the program that a reader would name together.

use zeropilot_record::Term;
use zeropilot_step::zero::{Category, Place, Rest};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use crate::escaped;

/// What a reader would call one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Part {
    Weights,
    OtherModels,
    Gathered,
    Master,
    Optimizer,
    Gradients,
    Buckets,
    Activations,
    Logits,
    ActivationGradients,
    Temporaries,
    Rollout,
    Runtime,
}

impl Part {
    pub(crate) const ALL: [Self; 13] = [
        Self::Weights,
        Self::OtherModels,
        Self::Gathered,
        Self::Master,
        Self::Optimizer,
        Self::Gradients,
        Self::Buckets,
        Self::Activations,
        Self::Logits,
        Self::ActivationGradients,
        Self::Temporaries,
        Self::Rollout,
        Self::Runtime,
    ];

    fn of(category: Category) -> Self {
        use Category as C;
        match category {
            C::Parameters
            | C::FrozenParameters
            | C::FrozenPartitions
            | C::FlatParameters
            | C::HostParameters
            | C::PersistentParameters
            | C::SecondaryPartitions
            | C::CallerParameters => Self::Weights,
            C::OtherModels => Self::OtherModels,
            C::GatheredParameters | C::GatherBuffer => Self::Gathered,
            C::Master => Self::Master,
            C::FirstMoment | C::SecondMoment | C::StepCounters => Self::Optimizer,
            C::MasterGradients
            | C::ParameterGradients
            | C::AveragedGradients
            | C::FlatGradients
            | C::FullGradients
            | C::GradientPartitions
            | C::LeftoverGradients
            | C::HostAccumulation
            | C::Gradients => Self::Gradients,
            C::ReduceBucket
            | C::HostStaging
            | C::TemporaryGradientHost
            | C::TemporaryGradientDevice
            | C::ReductionCopies
            | C::CommunicationCopies => Self::Buckets,
            C::Activations => Self::Activations,
            C::Logits => Self::Logits,
            C::ActivationGradients => Self::ActivationGradients,
            C::NormCopies
            | C::OptimizerGradients
            | C::OptimizerTemporaries
            | C::BuildCopies
            | C::KernelTemporaries => Self::Temporaries,
        }
    }

    fn text(self) -> Text {
        match self {
            Self::Weights => Text::new("weights", "模型权重"),
            Self::OtherModels => Text::new("weights of frozen models", "冻结模型的权重"),
            Self::Gathered => Text::new("gathered weights", "临时聚合的权重"),
            Self::Master => Text::new("fp32 master weights", "fp32 主权重"),
            Self::Optimizer => Text::new("optimizer states", "优化器状态"),
            Self::Gradients => Text::new("gradients", "梯度"),
            Self::Buckets => Text::new("communication buffers", "通信缓冲区"),
            Self::Activations => Text::new("activations", "激活值"),
            Self::Logits => Text::new("logits and loss", "logits 与 loss"),
            Self::ActivationGradients => Text::new("gradients of activations", "激活值的梯度"),
            Self::Temporaries => Text::new("temporary tensors", "临时张量"),
            Self::Rollout => Text::new("vLLM", "vLLM"),
            Self::Runtime => Text::new("CUDA, NCCL, allocator", "CUDA、NCCL 与分配器"),
        }
    }

    pub(crate) fn words(self, language: Language) -> &'static str {
        self.text().get(language)
    }

    /// Its name in machine formats.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::OtherModels => "other_models",
            Self::Gathered => "gathered_weights",
            Self::Master => "master_weights",
            Self::Optimizer => "optimizer_states",
            Self::Gradients => "gradients",
            Self::Buckets => "communication_buffers",
            Self::Activations => "activations",
            Self::Logits => "logits",
            Self::ActivationGradients => "activation_gradients",
            Self::Temporaries => "temporaries",
            Self::Rollout => "rollout_engine",
            Self::Runtime => "runtime",
        }
    }
}

/// The parts of what is alive in some places, the largest first, none that is empty.
pub(crate) fn parts(alive: &Rest, places: &[Place]) -> Vec<(Part, Bytes)> {
    let mut sums = Part::ALL.map(|part| (part, Bytes(0)));
    for (category, place, bytes) in alive.iter() {
        if places.contains(&place) {
            let sum = &mut sums[Part::of(category) as usize].1;
            *sum = *sum + bytes;
        }
    }
    let mut parts: Vec<_> = sums.into_iter().filter(|(_, bytes)| bytes.0 > 0).collect();
    parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    parts
}

/// The same for a record of a run.
pub fn terms(alive: &Rest, places: &[Place]) -> Vec<Term> {
    let term = |(part, bytes): (Part, Bytes)| Term { name: part.name().to_owned(), bytes: bytes.0 };
    parts(alive, places).into_iter().map(term).collect()
}

/// What a term of a record is called; its name if it is not known here.
pub(crate) fn term_words(name: &str, language: Language) -> String {
    if name == "process" {
        return tr!(language, "the process itself", "进程本身");
    }
    let known = Part::ALL.into_iter().find(|part| part.name() == name);
    known.map_or_else(|| escaped(name).into_owned(), |part| part.words(language).to_owned())
}
