//! How a model is trained, apart from what the DeepSpeed config says.

use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::ScaleStorage;
use zeropilot_units::ElementSize;

use crate::head::LossHead;
use crate::primitive::QuantizedProduct;
use crate::tape::{AttentionForm, Autocast, LayerKernels, Options};
use crate::zero::{BaseOptimizer, Engine, Loading};

/// What is trained.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Method {
    /// Everything.
    #[default]
    Full,
    /// Adapters on a frozen base.
    Lora(Lora),
    /// Adapters on a base quantized to four bits.
    QLora {
        /// The adapters.
        lora: Lora,
        /// How the scales of the base are kept.
        scales: ScaleStorage,
    },
    /// Only parameters whose name contains one of these.
    Only(Vec<String>),
}

impl Method {
    /// The adapters, if there are any.
    pub fn lora(&self) -> Option<&Lora> {
        match self {
            Self::Lora(lora) | Self::QLora { lora, .. } => Some(lora),
            Self::Full | Self::Only(_) => None,
        }
    }
}

/// How a model is trained.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// What is trained.
    pub method: Method,
    /// Tokens of a sequence.
    pub sequence: u64,
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
}

impl Recipe {
    /// Full training on sequences of this length.
    #[must_use]
    pub fn full(sequence: u64) -> Self {
        Self {
            method: Method::Full,
            sequence,
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
        }
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
