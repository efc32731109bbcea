//! Classes of structures that keep similar amounts of activations.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::family::Family;

use super::keys::Keys;
use super::names::TensorNames;

/// What a model is, as far as keys and names tell, to choose what stands in for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandInClass {
    /// A decoder with RMS norms and a gated feed-forward block.
    Gated,
    /// A mixture of experts whose tokens go to a few of them.
    Mixture,
    /// A decoder with layer norms, or with a feed-forward block without a gate.
    Ungated,
    /// A decoder that keeps the scores of its attention: with a cap, dropout or sinks.
    StoredScores,
    /// State spaces, linear attention or convolutions in place of attention.
    StateSpace,
    /// A mixture that sends every token through every expert.
    EveryExpert,
    /// An encoder.
    Encoder,
}

/// Activation functions of blocks without a gate.
const UNGATED_ACTIVATIONS: [&str; 6] =
    ["relu", "relu2", "xielu", "gelu_new", "gelu_fast", "quick_gelu"];

/// Names of the rate at which attention drops scores.
pub(super) const ATTENTION_DROPOUT: [&str; 3] =
    ["attention_dropout", "attn_pdrop", "attention_probs_dropout_prob"];

/// Names of the rate at which the residual stream is dropped.
pub(super) const HIDDEN_DROPOUT: [&str; 5] =
    ["hidden_dropout", "resid_pdrop", "hidden_dropout_prob", "dropout", "resid_dropout"];

/// Beginnings of keys that only models with state spaces have.
const STATE_SPACE_KEYS: [&str; 6] =
    ["mamba_", "ssm_", "linear_num_", "state_size", "conv_kernel", "linear_attn_config"];

/// Kinds of layers that are no attention over all tokens.
const STATE_SPACE_LAYERS: [&str; 6] =
    ["linear_attention", "conv", "mamba", "recurrent", "gated_delta_net", "rwkv"];

impl StandInClass {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Gated,
        Self::Mixture,
        Self::Ungated,
        Self::StoredScores,
        Self::StateSpace,
        Self::EveryExpert,
        Self::Encoder,
    ];

    /// Its name in data and in output for machines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gated => "gated",
            Self::Mixture => "mixture",
            Self::Ungated => "ungated",
            Self::StoredScores => "stored_scores",
            Self::StateSpace => "state_space",
            Self::EveryExpert => "every_expert",
            Self::Encoder => "encoder",
        }
    }

    /// The class of a config, with what the names of its tensors add.
    pub(crate) fn seen_in(object: &Map<String, Value>, names: &TensorNames) -> Self {
        let model_type = object.get("model_type").and_then(Value::as_str).unwrap_or_default();
        if has_state_space(object) {
            return Self::StateSpace;
        }
        if is_encoder(object) {
            return Self::Encoder;
        }
        let has_experts = Keys::has_experts(object);
        if has_experts && model_type.starts_with("llama4") {
            return Self::EveryExpert;
        }
        if stores_scores(object) || names.has_sinks {
            return Self::StoredScores;
        }
        if has_experts {
            return Self::Mixture;
        }
        if is_ungated(object, names) { Self::Ungated } else { Self::Gated }
    }

    /// The class of a known family, for one that is lent the program of another.
    pub fn of(family: Family) -> Self {
        use Family as F;
        match family {
            F::Bert | F::ModernBert | F::Roberta | F::XlmRoberta => Self::Encoder,
            F::Mt5 | F::T5 | F::Whisper => Self::Encoder,
            F::FalconH1 | F::GraniteMoeHybrid | F::Lfm2 | F::Mamba2 => Self::StateSpace,
            F::Qwen35Text | F::Qwen35MoeText | F::Qwen3Next => Self::StateSpace,
            F::Llama4Text => Self::EveryExpert,
            F::Bloom | F::Gemma2 | F::GptJ | F::GptNeo | F::GptOss | F::SeedOss => {
                Self::StoredScores
            }
            F::Apertus | F::Arcee | F::Falcon | F::Gpt2 | F::GptBigCode => Self::Ungated,
            F::GptNeoX | F::Nemotron | F::Opt | F::Phi => Self::Ungated,
            F::StableLm | F::Starcoder2 => Self::Ungated,
            F::DeepseekV2 | F::DeepseekV3 | F::Dots1 | F::Ernie45Moe | F::Glm4Moe => Self::Mixture,
            F::GraniteMoe | F::MinimaxM2 | F::Mixtral | F::Olmoe | F::Phimoe => Self::Mixture,
            F::Qwen2Moe | F::Qwen3Moe => Self::Mixture,
            _ => Self::Gated,
        }
    }
}

fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn has_state_space(object: &Map<String, Value>) -> bool {
    let by_key = object.iter().any(|(key, value)| {
        is_set(value) && STATE_SPACE_KEYS.iter().any(|start| key.starts_with(start))
    });
    let kinds = ["layer_types", "layers_block_type", "block_types", "layers_type"];
    let mut kinds = kinds.iter().filter_map(|key| object.get(*key)?.as_array()).flatten();
    by_key || kinds.any(|kind| kind.as_str().is_some_and(|kind| STATE_SPACE_LAYERS.contains(&kind)))
}

fn is_encoder(object: &Map<String, Value>) -> bool {
    let first = object.get("architectures").and_then(|list| list.get(0)).and_then(Value::as_str);
    let is_masked = first.is_some_and(|class| class.ends_with("ForMaskedLM"));
    is_masked
        || object.get("type_vocab_size").and_then(Value::as_u64).is_some_and(|kinds| kinds > 0)
}

fn stores_scores(object: &Map<String, Value>) -> bool {
    let above_zero = |key: &str| object.get(key).and_then(Value::as_f64).is_some_and(|it| it > 0.0);
    ATTENTION_DROPOUT.into_iter().chain(["attn_logit_softcapping"]).any(above_zero)
}

/// Whether feed-forward blocks have no gate, or norms a bias.
pub(super) fn is_ungated(object: &Map<String, Value>, names: &TensorNames) -> bool {
    match names.has_gate {
        Some(has_gate) => !has_gate || names.has_norm_bias,
        None => looks_ungated(object),
    }
}

fn looks_ungated(object: &Map<String, Value>) -> bool {
    let activation = ["hidden_act", "activation_function", "hidden_activation", "activation"];
    let word = activation.iter().find_map(|key| object.get(*key)?.as_str());
    let by_activation = word.is_some_and(|word| UNGATED_ACTIVATIONS.contains(&word));
    let has = |key: &str| object.get(key).is_some_and(is_set);
    let by_norm =
        ["layer_norm_epsilon", "layer_norm_eps", "layernorm_epsilon"].into_iter().any(has);
    by_activation || (by_norm && !has("rms_norm_eps"))
}
