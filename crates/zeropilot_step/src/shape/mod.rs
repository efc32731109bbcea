//! The dimensions of a model and the switches of its family.

mod tower;

use std::collections::BTreeSet;

use zeropilot_model::quantization::QuantizedBase;

use crate::primitive::QuantizedProduct;

pub use tower::{Grid, Segments, Speech, Tower, Vision, VisionKind};

/// Dimensions of a model. Fields a family does not have stay zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Hidden size.
    pub hidden: u64,
    /// Attention heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Elements of a head.
    pub head_width: u64,
    /// Intermediate size of the feed-forward part.
    pub intermediate: u64,
    /// Vocabulary.
    pub vocabulary: u64,
    /// Layers (of each stack in an encoder-decoder).
    pub layers: u64,
    /// Rows of a learned position table.
    pub positions: u64,
    /// Experts of a layer.
    pub experts: u64,
    /// Experts each token is sent to.
    pub experts_per_token: u64,
    /// Intermediate size of an expert.
    pub expert_intermediate: u64,
    /// Intermediate size of the expert all tokens share.
    pub shared_intermediate: u64,
    /// Number of shared experts.
    pub shared_experts: u64,
    /// Rank of the latent query.
    pub query_latent: u64,
    /// Rank of the latent key and value.
    pub kv_latent: u64,
    /// Elements of a query or key head without position.
    pub nope_width: u64,
    /// Elements of a query or key head with rotary position.
    pub rope_width: u64,
    /// Elements of a value head.
    pub value_width: u64,
    /// Layers at the beginning that have no experts.
    pub dense_layers: u64,
    /// Groups of experts.
    pub expert_groups: u64,
    /// Groups each token may choose from.
    pub groups_per_token: u64,
}

/// What one micro step is fed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Sequences.
    pub sequences: u64,
    /// Tokens of a sequence.
    pub length: u64,
    /// Tokens of a target sequence (encoder-decoder only).
    pub target_length: u64,
}

impl Batch {
    /// Tokens of the batch.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.sequences * self.length
    }
}

/// What makes room for long sequences, beside what ZeRO does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LongContext {
    /// Ranks that share a sequence (DeepSpeed's Ulysses); one where every rank has whole sequences.
    pub sequence_ranks: u64,
    /// How layers are recomputed, where they are.
    pub checkpoints: Checkpoints,
    /// How feed-forward parts are computed.
    pub mlp_tiles: MlpTiles,
}

impl LongContext {
    /// Nothing of it.
    pub const NONE: Self =
        Self { sequence_ranks: 1, checkpoints: Checkpoints::Counted, mlp_tiles: MlpTiles::Whole };

    /// Groups of ranks that have sequences of their own: as many as there are ranks, unless some share theirs.
    #[must_use]
    pub fn groups(self, ranks: u64) -> u64 {
        ranks / self.sequence_ranks.max(1)
    }

    /// What a rank has of a sequence.
    #[must_use]
    pub fn share(self, length: u64) -> u64 {
        length / self.sequence_ranks.max(1)
    }
}

/// Layers that ranks share: each has a part of every weight (DeepSpeed's AutoTP).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorParallel {
    /// Ranks that share every layer; one where every rank has whole layers.
    pub ranks: u64,
    /// Whether every rank keeps its part of the logits, and of the embedding if that is the output projection too.
    pub splits_vocabulary: bool,
}

impl TensorParallel {
    /// Whole layers.
    pub const NONE: Self = Self { ranks: 1, splits_vocabulary: false };

    /// What a rank has of a model.
    pub(crate) fn split(self, shape: Shape) -> Shape {
        Shape {
            heads: shape.heads / self.ranks,
            kv_heads: shape.kv_heads / self.ranks,
            intermediate: shape.intermediate / self.ranks,
            ..shape
        }
    }
}

/// How PyTorch recomputes a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checkpoints {
    /// `use_reentrant=False`: what the layer would save is counted, and recomputed as far as that.
    Counted,
    /// `use_reentrant=True`: the layer runs without a graph, and whole again in backward.
    Reentrant,
    /// The same, with its input on the host meanwhile.
    OnHost,
}

/// How many tiles a feed-forward part is computed in (DeepSpeed's `TiledMLP`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MlpTiles {
    /// In one, as the model does.
    Whole,
    /// As many as the tokens of a sequence on a rank are times the hidden size; all ranks agree on the number first.
    Auto,
    /// So many.
    Count(u64),
}

/// Switches of a model's configuration that change its program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Switches {
    /// Dropout on embeddings.
    pub embedding_dropout: bool,
    /// Dropout on residual branches.
    pub residual_dropout: bool,
    /// Dropout on attention probabilities.
    pub attention_dropout: bool,
    /// Attention window in tokens.
    pub sliding_window: Option<u64>,
    /// The output projection shares the embedding's weight.
    pub tied: Option<bool>,
    /// The feed-forward part of a T5 is gated (version 1.1).
    pub is_gated: bool,
    /// Mixture of experts: normalise the chosen weights.
    pub normalise_top_k: Option<bool>,
    /// Recompute layers in backward.
    pub checkpointing: bool,
    /// The embedding's output is made to need a gradient.
    pub input_gradients: bool,
}

impl Switches {
    /// Everything off or left to the family.
    pub const NONE: Self = Self {
        embedding_dropout: false,
        residual_dropout: false,
        attention_dropout: false,
        sliding_window: None,
        tied: None,
        is_gated: false,
        normalise_top_k: None,
        checkpointing: false,
        input_gradients: false,
    };
}

/// Low-rank adapters.
#[derive(Debug, Clone, PartialEq)]
pub struct Lora {
    /// Names of the wrapped modules.
    pub targets: LoraTargets,
    /// Rank.
    pub rank: u64,
    /// Dropout before the adapter.
    pub has_dropout: bool,
    /// Modules that are trained in full beside the adapters.
    pub trained_modules: Vec<String>,
    /// Adapters of tensors that are no layers: stacks of experts, routers.
    pub folds: Vec<Fold>,
    /// Bytes of an adapter element.
    pub element_bytes: u8,
}

/// An adapter whose product is added to a tensor before a module uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The module; a number in its name is written as `*`.
    pub module: String,
    /// The name of its tensor.
    pub parameter: String,
    /// Elements of the factor by which inputs are multiplied, and of the one that makes outputs.
    pub elements: (u64, u64),
}

/// Which modules adapters wrap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoraTargets {
    /// Every linear layer except the output projection.
    AllLinear,
    /// Modules whose name ends with one of these; a number in a name is written as `*`.
    Named(Vec<String>),
}

/// Linear layers in a smaller format.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantized {
    /// The format, and which layers keep theirs.
    pub base: QuantizedBase,
    /// What a product with such a weight keeps.
    pub product: QuantizedProduct,
}

/// Which parameters are trained, and how the model is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Training {
    /// Bytes of a model element.
    pub element_bytes: u8,
    /// Weights of linear layers are stored in a smaller format.
    pub quantized: Option<Quantized>,
    /// Adapters.
    pub lora: Option<Lora>,
    /// Names of modules that ZeRO-3 gathers and releases as a whole.
    pub leaves: BTreeSet<String>,
    /// Names of parameters that are not trained; a number in a name may be written as `*`.
    pub frozen: BTreeSet<String>,
}
