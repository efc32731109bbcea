//! X: ZeRO++.

pub(crate) mod hpz_divides;
pub(crate) mod hpz_too_large;
pub(crate) mod needs_stage_3;
pub(crate) mod one_node;
pub(crate) mod quantized_gradients;
