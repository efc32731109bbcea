//! Layers that ranks share: which models are followed then, and what a rank has of their parameters.

use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Stage;
use zeropilot_model::Model;

use super::recipe::Recipe;
use super::shape;
use crate::family::{Family, Setup};
use crate::head::LossHead;
use crate::shape::{LongContext, TensorParallel};
use crate::zero::Parameter;

/// Why no prediction follows a config that splits layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFollowed {
    /// Another release splits layers in another way.
    Version,
    /// Stage 3 shards some parameters over other ranks then.
    Stage3,
    /// The config names the layers itself.
    OwnPlan,
    /// Models of this kind.
    Family,
    /// Heads, widths or words cannot be divided evenly.
    Uneven,
    /// Adapters, or parameters that are not trained.
    Frozen,
    /// Another task, another loss, or sequences that ranks share.
    Recipe,
    /// An output projection that is the embedding and is to stay whole.
    WholeTiedHead,
}

/// How ranks share the layers of a model under a config.
///
/// # Errors
///
/// If no prediction follows it.
pub fn follow(
    model: &Model,
    recipe: &Recipe,
    config: &ResolvedConfig,
) -> Result<TensorParallel, NotFollowed> {
    let Some(split) = config.tensor_parallel() else { return Ok(TensorParallel::NONE) };
    let (family, is_own) = shape::program(model);
    let shape = shape::shape(model);
    let ranks = split.ranks;
    let is_even = |number: u64| number.is_multiple_of(ranks);
    let is_known =
        matches!(family, Family::Llama | Family::Mistral | Family::Qwen2 | Family::Qwen3);
    let is_tied = shape::switches(model, family).tied.unwrap_or(false);
    let splits_vocabulary = split.splits_vocabulary.unwrap_or(is_tied);
    let is_plain = recipe.task.is_supervised()
        && recipe.long_context == LongContext::NONE
        && matches!(recipe.loss, LossHead::Model | LossHead::ItemsInBatch);
    let problems = [
        (config.version() != EngineVersion::NEWEST, NotFollowed::Version),
        (config.zero().stage == Stage::Three, NotFollowed::Stage3),
        (split.has_own_plan, NotFollowed::OwnPlan),
        (!is_known || !is_own || model.stand_in().is_some(), NotFollowed::Family),
        (
            ![shape.heads, shape.kv_heads, shape.intermediate, shape.vocabulary]
                .into_iter()
                .all(is_even),
            NotFollowed::Uneven,
        ),
        (
            recipe.method.lora().is_some() || model.parameters().any(|it| !it.parameter.trainable),
            NotFollowed::Frozen,
        ),
        (!is_plain, NotFollowed::Recipe),
        (is_tied && !splits_vocabulary, NotFollowed::WholeTiedHead),
    ];
    match problems.into_iter().find(|(is_one, _)| *is_one) {
        Some((_, problem)) => Err(problem),
        None => Ok(TensorParallel { ranks, splits_vocabulary }),
    }
}

/// The parameters of which every rank has a part, marked as such.
pub(super) fn split<'a>(
    parameters: &'a mut [Parameter],
    names: impl Iterator<Item = String> + 'a,
    setup: &'a Setup,
) -> impl Iterator<Item = &'a mut Parameter> {
    let ranks = setup.tensor.ranks;
    let is_split = move |name: &str| match name.rsplit('.').nth(1).unwrap_or_default() {
        "q_proj" | "k_proj" | "v_proj" | "o_proj" | "gate_proj" | "up_proj" | "down_proj"
        | "lm_head" => true,
        "embed_tokens" => setup.embedding_ranks() > 1,
        _ => false,
    };
    let of_split = parameters.iter_mut().zip(names).filter(move |(_, name)| is_split(name));
    of_split.map(move |(parameter, _)| {
        parameter.parts = ranks;
        parameter
    })
}
