//! The sizes of the model that three bucket keys are made of.
//!
//! The two front ends look for the hidden size in different places; both lookups are here.

use num_bigint::BigInt;
use num_traits::FromPrimitive;

use crate::syntax::Value;

/// What `model.config` says about widths. A `None` means that the attribute does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    /// Whether the model has a `config` at all.
    pub has_config: bool,
    /// `config.hidden_size`.
    pub hidden_size: Option<u64>,
    /// `config.hidden_sizes`.
    pub hidden_sizes: Option<Vec<u64>>,
    /// `config.text_config`.
    pub text_config: Option<TextConfigFacts>,
}

/// What `model.config.text_config` says about widths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextConfigFacts {
    /// `config.text_config.hidden_size`.
    pub hidden_size: Option<u64>,
    /// `config.text_config.hidden_sizes`.
    pub hidden_sizes: Option<Vec<u64>>,
}

impl ModelFacts {
    /// A model that names one hidden size.
    pub fn with_hidden_size(hidden_size: u64) -> Self {
        Self { hidden_size: Some(hidden_size), ..Self::without_sizes() }
    }

    /// A model whose config names no size.
    pub fn without_sizes() -> Self {
        Self { has_config: true, hidden_size: None, hidden_sizes: None, text_config: None }
    }

    /// The Trainer's lookup, which also looks into the text part of a multimodal model.
    pub(super) fn hidden_size_for_trainer(&self) -> Option<u64> {
        if !self.has_config {
            return None;
        }
        if self.hidden_size.is_some() || self.hidden_sizes.is_some() {
            return self.hidden_size_for_accelerate();
        }
        let text = self.text_config.as_ref()?;
        text.hidden_size.or_else(|| largest(text.hidden_sizes.as_deref()))
    }

    /// accelerate's lookup, which does not.
    pub(super) fn hidden_size_for_accelerate(&self) -> Option<u64> {
        if !self.has_config {
            return None;
        }
        self.hidden_size.or_else(|| largest(self.hidden_sizes.as_deref()))
    }
}

fn largest(sizes: Option<&[u64]>) -> Option<u64> {
    sizes?.iter().copied().max()
}

pub(super) const REDUCE_BUCKET_SIZE: &str = "zero_optimization.reduce_bucket_size";
pub(super) const PREFETCH_BUCKET_SIZE: &str = "zero_optimization.stage3_prefetch_bucket_size";
pub(super) const PERSISTENCE_THRESHOLD: &str =
    "zero_optimization.stage3_param_persistence_threshold";

/// What the three bucket keys become for a hidden size.
pub(super) struct Buckets {
    pub(super) reduce: Value,
    pub(super) prefetch: Value,
    pub(super) persistence: Value,
}

impl Buckets {
    pub(super) fn of(hidden_size: u64) -> Self {
        let width = BigInt::from(hidden_size);
        let as_float = hidden_size as f64;
        // Two roundings, in Python's order of evaluation, then cut off towards zero.
        let prefetch = BigInt::from_f64(0.9 * as_float * as_float).unwrap_or_default();
        Self {
            reduce: Value::Int(&width * &width),
            prefetch: Value::Int(prefetch),
            persistence: Value::Int(width * 10),
        }
    }
}
