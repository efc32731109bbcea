//! Z: how models are built under ZeRO stage 3, found in the config and the model.

pub(crate) mod output_tied;
