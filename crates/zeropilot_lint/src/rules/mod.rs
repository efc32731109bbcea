//! The rules, one file each, grouped by what they look at; the letter of a code says what goes wrong.

pub(crate) mod auto;
pub(crate) mod batch;
pub(crate) mod checkpointing;
#[cfg(feature = "job")]
pub(crate) mod frameworks;
pub(crate) mod gradients;
pub(crate) mod integrations;
pub(crate) mod keys;
#[cfg(feature = "job")]
pub(crate) mod launch;
pub(crate) mod offload;
pub(crate) mod optimizer;
pub(crate) mod parallelism;
pub(crate) mod precision;
#[cfg(feature = "job")]
pub(crate) mod quantized;
pub(crate) mod saving;
#[cfg(feature = "job")]
pub(crate) mod training;
pub(crate) mod versions;
pub(crate) mod zero3;
pub(crate) mod zeropp;
