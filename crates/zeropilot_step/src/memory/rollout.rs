//! What an engine that generates takes of the GPUs that train, from the source of vLLM and its trainers: none of it has
//! been run on a GPU here.

use zeropilot_cluster::Cluster;
use zeropilot_model::Model;
use zeropilot_units::{Bytes, Estimate};

use crate::task::{Colocated, Task};

/// What a sleeping engine keeps: its CUDA graphs and what its kernels have allocated, in GiB.
const ASLEEP_GIB: [u64; 3] = [1, 2, 3];
/// What an engine needs beside weights and cache: activations of the tokens it takes at once, and CUDA graphs, in GiB.
const RUNNING_GIB: u64 = 2;

/// The memory of an engine that generates on the GPUs that train.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolloutMemory {
    /// What it takes of a GPU while it generates: what it is allowed to, since the cache fills what is left.
    pub share: Bytes,
    /// What it takes while the model is trained.
    pub beside_training: Estimate,
    /// Its weights on a GPU, in 16 bits.
    pub weights: Bytes,
    /// What is left of the share for the cache of keys and values; without any it refuses to start.
    pub cache: Bytes,
    /// What a token takes of that cache on a GPU, where the model's dimensions are known.
    pub cached_token: Option<Bytes>,
    /// Whether it gives its memory back while the model is trained.
    pub sleeps: bool,
}

impl RolloutMemory {
    /// That of a task, where an engine generates on the same GPUs and their memory is known.
    pub fn of(task: &Task, model: &Model, cluster: &Cluster) -> Option<Self> {
        let engine @ Colocated { sleeps, tensor_parallel, .. } = *task.colocated()?;
        let split = tensor_parallel.max(1);
        let share = engine.share(cluster.capacity()?.bytes.expected());
        let weights = weights(model, split);
        let [low, expected, high] = ASLEEP_GIB.map(|gib| Bytes(gib * Bytes::GIB.0));
        Some(Self {
            share,
            beside_training: if sleeps {
                Estimate::new(low.min(share), expected.min(share), high.min(share))
            } else {
                Estimate::exact(share)
            },
            weights,
            cache: share.saturating_sub(Self::least(model, split)),
            cached_token: Self::cached_token(model, split),
            sleeps,
        })
    }

    /// What a token takes of the cache on a GPU, if so many share a copy of the weights.
    pub fn cached_token(model: &Model, split: u64) -> Option<Bytes> {
        let sizes = model.dimensions()?;
        // Keys and values of 16 bits.
        Some(Bytes(sizes.layers * sizes.kv_heads.div_ceil(split) * sizes.head_dim * 2 * 2))
    }

    /// What the engine needs of a GPU without any cache.
    pub fn least(model: &Model, split: u64) -> Bytes {
        weights(model, split) + Bytes(RUNNING_GIB * Bytes::GIB.0)
    }

    /// Tokens that its cache holds.
    pub fn cached_tokens(&self) -> Option<u64> {
        self.cached_token.filter(|it| it.0 > 0).map(|token| self.cache.0 / token.0)
    }
}

/// Weights of 16 bits on a GPU.
fn weights(model: &Model, split: u64) -> Bytes {
    Bytes(model.elements().0.saturating_mul(2) / split)
}
