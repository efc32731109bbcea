//! Long sequences: which models can share, tile and offload them, and what that changes for ZeRO.

use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::settings::{DataType, Stage, Zero};

use super::recipe::Recipe;
use crate::family::Family;
use crate::shape::{Checkpoints, LongContext, MlpTiles, Shape, Tower};
use crate::zero::Engine;

/// Why long sequences are not trained, or not predicted, this way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LongContextError {
    /// Heads of the queries.
    #[error("{heads} attention heads cannot be divided among {ranks} ranks that share a sequence")]
    Heads {
        /// Heads of the model.
        heads: u64,
        /// Ranks.
        ranks: u64,
    },
    /// Heads of keys and values.
    #[error(
        "{heads} KV heads can be neither divided among nor copied to {ranks} ranks that share a sequence"
    )]
    KvHeads {
        /// Heads of the model.
        heads: u64,
        /// Ranks.
        ranks: u64,
    },
    /// Tokens of a sequence.
    #[error("a sequence of {length} tokens cannot be divided among {ranks} ranks")]
    Length {
        /// Tokens.
        length: u64,
        /// Ranks.
        ranks: u64,
    },
    /// A model whose layers are not followed then.
    #[error(
        "zeropilot does not model sequence parallelism and offloaded checkpoints for {family} models"
    )]
    Family {
        /// Its family.
        family: &'static str,
    },
    /// A task, images or targets beside it.
    #[error("zeropilot models long-context options only for supervised training on text")]
    Task,
    /// Without DeepSpeed.
    #[error("sequence parallelism needs DeepSpeed; PyTorch alone does not support it")]
    Engine,
    /// A feed-forward part with experts, or one of another form.
    #[error("zeropilot does not model tiled feed-forward layers for {family} models")]
    TiledFamily {
        /// Its family.
        family: &'static str,
    },
    /// A loss of DeepSpeed in shards, beside what it was measured with.
    #[error("zeropilot does not model DeepSpeed's tiled losses here: {why}")]
    LossInShards {
        /// Beside what.
        why: LossProblem,
    },
    /// Adapters inside what is computed in tiles.
    #[error("tiled feed-forward layers with adapters fail")]
    TiledAdapters,
}

/// Why a loss of DeepSpeed in shards is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LossProblem {
    /// The family, a tower, a task, or PyTorch alone.
    #[error(
        "zeropilot models tiled losses only for supervised text training of Llama, Mistral or Qwen models with DeepSpeed"
    )]
    Job,
    /// The output layer shares its weight with the embedding, which has a gradient of its own.
    #[error("the output layer shares its weight with the embedding")]
    Tied,
}

fn check_loss(
    family: Family,
    tower: &Tower,
    recipe: &Recipe,
    is_tied: bool,
) -> Result<(), LossProblem> {
    if !recipe.loss.bypasses_model() {
        return Ok(());
    }
    let is_known =
        matches!(family, Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3);
    let is_plain = *tower == Tower::None && recipe.task.is_supervised();
    if !is_known || !is_plain || recipe.engine == Engine::PyTorch {
        return Err(LossProblem::Job);
    }
    if is_tied { Err(LossProblem::Tied) } else { Ok(()) }
}

/// Whether this model can be trained so; in the order in which the engine refuses.
pub(super) fn check(
    family: Family,
    shape: &Shape,
    tower: &Tower,
    recipe: &Recipe,
    is_tied: bool,
) -> Result<(), LongContextError> {
    check_loss(family, tower, recipe, is_tied)
        .map_err(|why| LongContextError::LossInShards { why })?;
    let LongContext { sequence_ranks: ranks, checkpoints, mlp_tiles } = recipe.long_context;
    if recipe.long_context == LongContext::NONE {
        return Ok(());
    }
    let is_tiled = mlp_tiles != MlpTiles::Whole;
    let (heads, kv_heads) = (shape.heads, shape.kv_heads);
    if !heads.is_multiple_of(ranks) {
        return Err(LongContextError::Heads { heads, ranks });
    }
    if !kv_heads.is_multiple_of(ranks) && !ranks.is_multiple_of(kv_heads) {
        return Err(LongContextError::KvHeads { heads: kv_heads, ranks });
    }
    let length = recipe.sequence;
    if !length.is_multiple_of(ranks) {
        return Err(LongContextError::Length { length, ranks });
    }
    let is_followed = matches!(
        family,
        Family::Llama
            | Family::Mistral
            | Family::Qwen2
            | Family::Qwen3
            | Family::Mixtral
            | Family::Qwen2Moe
            | Family::Qwen3Moe
    );
    let shares = ranks > 1;
    if shares && recipe.engine == Engine::PyTorch {
        return Err(LongContextError::Engine);
    }
    let has_experts = matches!(family, Family::Mixtral | Family::Qwen2Moe | Family::Qwen3Moe);
    if is_tiled && (has_experts || !is_followed) {
        return Err(LongContextError::TiledFamily { family: family.name() });
    }
    if !is_followed && (shares || checkpoints != Checkpoints::Counted) {
        return Err(LongContextError::Family { family: family.name() });
    }
    if *tower != Tower::None || !recipe.task.is_supervised() {
        return Err(LongContextError::Task);
    }
    Ok(())
}

/// What gradients travel in: fp32 unless the config says otherwise, in stages 1 and 2 whatever it says.
pub(super) fn communication_type(resolved: &ResolvedConfig, zero: &Zero) -> DataType {
    match zero.stage {
        Stage::One | Stage::Two => DataType::Fp32,
        Stage::Zero | Stage::Three => {
            resolved.sequence_communication_type().unwrap_or(DataType::Fp32)
        }
    }
}
