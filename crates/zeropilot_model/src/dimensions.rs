//! The numbers of a model that formulas for work and activations need.

/// The routed experts of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Experts in a layer.
    pub count: u64,
    /// Experts a token is sent to.
    pub per_token: u64,
    /// Inner width of one expert.
    pub intermediate_size: u64,
    /// Inner width of what every token passes beside the routed experts; 0 if there is no such thing.
    pub shared_intermediate_size: u64,
    /// Layers with experts.
    pub layers: u64,
}

/// The dimensions of a transformer, by one name in every family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Dimensions {
    /// Width of the residual stream.
    pub hidden_size: u64,
    /// Inner width of a dense feed-forward block.
    pub intermediate_size: u64,
    /// Layers; of a model with two stacks, those of the encoder.
    pub layers: u64,
    /// Layers of the decoder of a model with two stacks.
    pub decoder_layers: Option<u64>,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Width of one query or key head.
    pub head_dim: u64,
    /// Width of one value head.
    pub value_head_dim: u64,
    /// Rows of the embedding.
    pub vocab_size: u64,
    /// The longest sequence the config names.
    pub max_positions: Option<u64>,
    /// The mixture, if it is one.
    pub experts: Option<Experts>,
}
