//! The sizes of a model, under any of the names that configs use for them.

use serde_json::{Map, Value};

use crate::config::{ConfigError, ValueKind};
use crate::nearest::nearest_family;

use super::class::StandInClass;

const HIDDEN: &[&str] = &["hidden_size", "n_embd", "d_model", "n_embed", "model_dim", "dim"];
const LAYERS: &[&str] = &["num_hidden_layers", "n_layer", "num_layers", "n_layers"];
const HEADS: &[&str] = &[
    "num_attention_heads",
    "n_head",
    "num_heads",
    "n_heads",
    "num_query_heads",
    "attention_heads",
];
const KV_HEADS: &[&str] =
    &["num_key_value_heads", "num_kv_heads", "n_head_kv", "n_kv_heads", "multi_query_group_num"];
const HEAD_DIM: &[&str] = &["head_dim", "kv_channels", "attention_head_size"];
pub(super) const INNER: &[&str] = &[
    "intermediate_size",
    "ffn_dim",
    "n_inner",
    "ffn_hidden_size",
    "d_ff",
    "mlp_hidden_size",
    "inner_hidden_size",
];
const VOCABULARY: &[&str] = &["vocab_size", "padded_vocab_size", "n_vocab"];
const POSITIONS: &[&str] =
    &["max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "n_ctx"];
const EXPERTS: &[&str] = &[
    "num_experts",
    "num_local_experts",
    "n_routed_experts",
    "moe_num_experts",
    "num_routed_experts",
];
const EXPERTS_PER_TOKEN: &[&str] = &[
    "num_experts_per_tok",
    "moe_k",
    "moe_topk",
    "moe_top_k",
    "num_experts_per_token",
    "num_selected_experts",
];
const EXPERT_INNER: &[&str] =
    &["moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_dim"];
const SHARED_INNER: &[&str] = &[
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
];
const MIXTURE_SWITCHES: &[&str] = &["is_moe", "enable_moe_block", "use_moe"];
const LATENT: &[&str] = &["kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim"];
const DENSE_LAYERS: &[&str] = &["first_k_dense_replace", "num_dense_layers"];
const SHARED_EXPERTS: &[&str] =
    &["n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts"];

/// Width of a head of a model that names none, as state spaces do.
const USUAL_HEAD: u64 = 64;

/// The sizes of an unknown model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    pub(super) model_type: String,
    pub(super) hidden: u64,
    pub(super) layers: u64,
    pub(super) heads: u64,
    pub(super) kv_heads: Option<u64>,
    pub(super) head_dim: Option<u64>,
    pub(super) inner: Option<u64>,
    pub(super) vocabulary: u64,
    pub(super) positions: Option<u64>,
    pub(super) is_tied: Option<bool>,
    /// Whether attention goes through a latent of low rank.
    pub(super) is_latent: bool,
    pub(super) experts: Option<ExpertKeys>,
}

/// Those of its experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExpertKeys {
    pub(super) count: u64,
    pub(super) per_token: u64,
    pub(super) inner: Option<u64>,
    /// Width of what every token passes beside them; 0 if there is no such thing.
    pub(super) shared: u64,
    /// Dense layers before the first one with experts.
    pub(super) dense_layers: u64,
}

impl Keys {
    /// Whether an object has the width of a model.
    pub(super) fn has_width(object: &Map<String, Value>) -> bool {
        HIDDEN.iter().any(|key| object.get(*key).is_some_and(|value| !value.is_null()))
    }

    /// Whether it has experts.
    pub(super) fn has_experts(object: &Map<String, Value>) -> bool {
        let is_off = |key: &&str| object.get(*key) == Some(&Value::Bool(false));
        matches!(number(object, EXPERTS), Ok(Some(count)) if count > 1)
            && !MIXTURE_SWITCHES.iter().any(is_off)
    }

    pub(super) fn read(
        object: &Map<String, Value>,
        class: StandInClass,
    ) -> Result<Self, ConfigError> {
        let model_type = object.get("model_type").and_then(Value::as_str).unwrap_or_default();
        if object.get("is_encoder_decoder") == Some(&Value::Bool(true)) {
            return Err(ConfigError::NotModelled { key: "is_encoder_decoder".to_owned() });
        }
        let sizes = [HIDDEN, LAYERS, VOCABULARY, HEADS];
        let mut found = [None; 4];
        let mut missing = Vec::new();
        for (found, names) in found.iter_mut().zip(sizes) {
            *found = number(object, names)?;
            if found.is_none() {
                missing.extend(names.first());
            }
        }
        if let ([Some(hidden), .., None], StandInClass::StateSpace) = (found, class) {
            found[3] = Some((hidden / USUAL_HEAD).max(1));
            missing.retain(|key| *key != HEADS[0]);
        }
        let [Some(hidden), Some(layers), Some(vocabulary), Some(heads)] = found else {
            return Err(ConfigError::UnknownFamily {
                model_type: model_type.to_owned(),
                nearest: nearest_family(model_type),
                missing,
            });
        };
        Ok(Self {
            model_type: model_type.to_owned(),
            hidden,
            layers,
            heads,
            kv_heads: number(object, KV_HEADS)?,
            head_dim: number(object, HEAD_DIM)?,
            inner: number(object, INNER)?,
            vocabulary,
            positions: number(object, POSITIONS)?,
            is_tied: object.get("tie_word_embeddings").and_then(Value::as_bool),
            is_latent: LATENT.iter().all(|key| object.get(*key).is_some_and(Value::is_u64)),
            experts: experts(object)?,
        })
    }
}

fn experts(object: &Map<String, Value>) -> Result<Option<ExpertKeys>, ConfigError> {
    let count = number(object, EXPERTS)?.filter(|_| Keys::has_experts(object));
    let Some(count) = count else { return Ok(None) };
    let inner = number(object, EXPERT_INNER)?;
    let width = inner.or(number(object, INNER)?).unwrap_or(0);
    let shared = match number(object, SHARED_INNER)? {
        Some(shared) => shared,
        None => number(object, SHARED_EXPERTS)?.unwrap_or(0).saturating_mul(width),
    };
    Ok(Some(ExpertKeys {
        count,
        per_token: number(object, EXPERTS_PER_TOKEN)?.unwrap_or(2).clamp(1, count),
        inner,
        shared,
        dense_layers: dense_layers(object)?,
    }))
}

/// Layers without experts, which nearly always are the first.
fn dense_layers(object: &Map<String, Value>) -> Result<u64, ConfigError> {
    match object.get("mlp_layer_types").and_then(Value::as_array) {
        Some(kinds) => Ok(kinds.iter().filter(|kind| *kind == "dense").count() as u64),
        None => Ok(number(object, DENSE_LAYERS)?.unwrap_or(0)),
    }
}

/// The first of these keys that has a value; of a list with one for every layer the largest.
fn number(object: &Map<String, Value>, names: &[&str]) -> Result<Option<u64>, ConfigError> {
    let given = names.iter().find_map(|key| {
        let value = object.get(*key).filter(|value| !value.is_null())?;
        Some((*key, value))
    });
    let Some((key, value)) = given else { return Ok(None) };
    let largest = |list: &Vec<Value>| {
        list.iter().map(Value::as_u64).collect::<Option<Vec<u64>>>()?.into_iter().max()
    };
    let number = value.as_u64().or_else(|| value.as_array().and_then(largest));
    number.map(Some).ok_or_else(|| ConfigError::WrongKind {
        key: key.to_owned(),
        expected: ValueKind::Integer,
        found: value.into(),
    })
}
