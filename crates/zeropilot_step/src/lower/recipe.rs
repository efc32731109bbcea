//! How a model is trained, apart from what the DeepSpeed config says.

use zeropilot_model::Model;
use zeropilot_model::image::ImageSize;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::{Adapters, QuantizedBase};
use zeropilot_units::ElementSize;

use crate::head::LossHead;
use crate::primitive::QuantizedProduct;
use crate::shape::{Grid, LongContext, TensorParallel};
use crate::tape::{AttentionForm, Autocast, LayerKernels, Options};
use crate::task::Task;
use crate::zero::{BaseOptimizer, Engine, Loading};

/// What is trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Method {
    /// Everything the model does not mark as frozen.
    #[default]
    Full,
    /// Adapters on a frozen base.
    Lora(Lora),
    /// Adapters on a quantized base.
    QLora {
        /// The adapters.
        lora: Lora,
        /// How the base is stored; `None` as the model's config says, otherwise in NF4.
        base: Option<QuantizedBase>,
    },
}

impl Method {
    /// The adapters, if there are any.
    pub fn lora(&self) -> Option<&Lora> {
        match self {
            Self::Lora(lora) | Self::QLora { lora, .. } => Some(lora),
            Self::Full => None,
        }
    }

    /// The quantized base below the adapters. A base that has to be loaded in 16 bits, or whose layout is not known, is
    /// none: it counts with its weights as the model has them.
    pub fn base(&self, model: &Model) -> Option<QuantizedBase> {
        let own = || {
            let base = model.quantized_base()?;
            let is_trainable =
                matches!(base.adapters(), Adapters::Trainable | Adapters::NeedPackage(_));
            (is_trainable && base.is_sized()).then(|| base.clone())
        };
        match self {
            Self::Full => None,
            Self::Lora(_) => own(),
            Self::QLora { base: Some(base), .. } => Some(base.clone()),
            Self::QLora { base: None, .. } => own().or_else(|| Some(QuantizedBase::nf4())),
        }
    }
}

/// The images that a model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Images {
    /// As many of one size in every sequence.
    PerSequence {
        /// How many.
        count: u64,
        /// The size of each.
        size: ImageSize,
        /// Pixels to which larger ones are reduced, by processors that do so.
        max_pixels: Option<u64>,
    },
    /// Those of a micro batch, already cut into patches.
    Patches(Vec<Grid>),
}

/// How a model is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// What is trained.
    pub method: Method,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// What makes room for long sequences.
    pub long_context: LongContext,
    /// How ranks share layers.
    pub tensor: TensorParallel,
    /// What it sees; `None` for text alone.
    pub images: Option<Images>,
    /// Tokens of a target sequence of a model with two stacks; `None` as long as the source.
    pub target: Option<u64>,
    /// Recompute every layer in backward.
    pub checkpointing: bool,
    /// Whether the embedding's output is made to need a gradient; `None` as front ends do: with adapters and
    /// checkpointing.
    pub input_gradients: Option<bool>,
    /// The optimizer has two parameter groups, the second of the norms.
    pub norms_apart: bool,
    /// Which form attention takes.
    pub attention: AttentionForm,
    /// How the loss is computed.
    pub loss: LossHead,
    /// How the model is loaded; `None` as the front end does: partitioned under stage 3, whole otherwise.
    pub loading: Option<Loading>,
    /// The optimizer the script brings, where the config names none.
    pub optimizer: BaseOptimizer,
    /// Bytes of an adapter element where they stay as PEFT makes them (stage 3 on a partitioned base, or no DeepSpeed).
    pub adapters_in_fp32: bool,
    /// Who keeps weights, gradients and optimizer states.
    pub engine: Engine,
    /// Whether forward runs under `torch.autocast`.
    pub autocast: Autocast,
    /// Which kernels norms, rotary positions and gated activations run in.
    pub layer_kernels: LayerKernels,
    /// How weights of four bits are multiplied.
    pub quantized_product: QuantizedProduct,
    /// `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
    pub expandable_segments: bool,
    /// What it is trained for, and with the help of which other models.
    pub task: Task,
}

impl Recipe {
    /// Elements of a tensor that Liger's kernels reach: they count in 32 bits (inferred from the longest published runs).
    pub const LIGER_REACH: u64 = 1 << 31;

    /// Whether some of Liger's kernels run.
    #[must_use]
    pub fn runs_liger(&self) -> bool {
        self.loss.is_fused() || self.layer_kernels == LayerKernels::Liger
    }

    /// Full training on sequences of this length.
    #[must_use]
    pub fn full(sequence: u64) -> Self {
        Self {
            method: Method::Full,
            sequence,
            long_context: LongContext::NONE,
            tensor: TensorParallel::NONE,
            images: None,
            target: None,
            checkpointing: false,
            input_gradients: None,
            norms_apart: false,
            attention: AttentionForm::AsModel,
            loss: LossHead::Model,
            loading: None,
            optimizer: BaseOptimizer::TorchAdam,
            adapters_in_fp32: true,
            engine: Engine::DeepSpeed,
            autocast: Autocast::Off,
            layer_kernels: LayerKernels::Model,
            quantized_product: QuantizedProduct::Weight,
            expandable_segments: false,
            task: Task::default(),
        }
    }

    /// Groups of ranks that have sequences of their own: as many as there are ranks, unless some share sequences or
    /// layers.
    pub fn groups(&self, ranks: u64) -> u64 {
        ranks / self.gpus_per_sequence()
    }

    /// Ranks that train on the same sequences.
    pub fn gpus_per_sequence(&self) -> u64 {
        (self.long_context.sequence_ranks * self.tensor.ranks).max(1)
    }

    /// How a tape runs the program.
    pub fn options(&self, options: Options) -> Options {
        Options {
            attention: self.attention,
            autocast: self.autocast,
            layer_kernels: self.layer_kernels,
            ..options
        }
    }

    /// How the model is loaded.
    pub(super) fn loading(&self, is_stage_3: bool, model: ElementSize) -> Loading {
        self.loading.unwrap_or(if is_stage_3 {
            Loading::Partitioned
        } else {
            Loading::Whole(model)
        })
    }
}
