//! Which family lends its tree, and the config it builds it from.

use serde_json::{Map, Value, json};

use crate::config::facts;
use crate::family::Family;

use super::class::{ATTENTION_DROPOUT, HIDDEN_DROPOUT, StandInClass, is_ungated};
use super::keys::{ExpertKeys, INNER, Keys};
use super::names::TensorNames;

/// The family whose structure stands in for a model of these keys.
pub(super) fn family(
    keys: &Keys,
    own: &Map<String, Value>,
    class: StandInClass,
    names: &TensorNames,
) -> Family {
    let has_whole_heads = keys.hidden.is_multiple_of(keys.heads.max(1));
    let plain_heads = has_whole_heads
        && keys.head_dim.is_none_or(|width| width == keys.hidden / keys.heads.max(1))
        && keys.kv_heads.is_none_or(|heads| heads == keys.heads);
    let has_shared = keys.experts.is_some_and(|experts| experts.shared > 0);
    let decoder = || match (names.has_head_norms, has_whole_heads) {
        (true, _) => Family::Qwen3,
        (false, true) => Family::Llama,
        // Its class does not insist on whole heads.
        (false, false) => Family::Mistral,
    };
    let mixture = || match (has_shared, names.has_gate.is_some() && !names.has_head_norms) {
        (true, _) => Family::Qwen2Moe,
        (false, true) => Family::Mixtral,
        (false, false) => Family::Qwen3Moe,
    };
    match class {
        _ if keys.is_latent => Family::DeepseekV3,
        _ if keys.experts.is_some() => mixture(),
        StandInClass::Encoder if has_whole_heads => Family::Bert,
        // With the dropout of the config it keeps its scores too.
        StandInClass::StoredScores if plain_heads && is_ungated(own, names) => Family::GptNeoX,
        StandInClass::StoredScores if has_whole_heads => Family::Gemma2,
        StandInClass::Ungated if plain_heads => Family::GptNeoX,
        StandInClass::Ungated => Family::Starcoder2,
        _ => decoder(),
    }
}

/// Keys whose meaning differs from family to family.
const OWN_MEANING: [&str; 7] = [
    "architectures",
    "layer_types",
    "mlp_only_layers",
    "per_layer_config",
    "n_embed",
    "is_decoder",
    "add_cross_attention",
];

/// The config of a model of this family with these sizes.
pub(super) fn object(
    keys: &Keys,
    own: &Map<String, Value>,
    family: Family,
    class: StandInClass,
    names: &TensorNames,
) -> Map<String, Value> {
    // What decides on dropout, windows, biases and labels has the same name nearly everywhere.
    let mut target = Target { object: own.clone(), family };
    for key in OWN_MEANING {
        target.object.remove(key);
    }
    let inner = keys.inner.or(names.inner).unwrap_or(keys.hidden.saturating_mul(4));
    target.set("hidden_size", json!(keys.hidden));
    target.set("num_hidden_layers", json!(keys.layers));
    target.set("num_attention_heads", json!(keys.heads));
    target.set("num_key_value_heads", json!(keys.kv_heads.unwrap_or(keys.heads)));
    target.set("vocab_size", json!(keys.vocabulary));
    for key in INNER {
        target.set_known(key, json!(inner));
    }
    let head_dim = keys.head_dim.unwrap_or_else(|| (keys.hidden / keys.heads.max(1)).max(1));
    target.set("head_dim", json!(head_dim));
    if let Some(positions) = keys.positions {
        target.set("max_position_embeddings", json!(positions));
    }
    let is_tied = keys.is_tied == Some(true) || names.has_output == Some(false);
    target.set("tie_word_embeddings", json!(is_tied));
    if let Some(experts) = &keys.experts {
        target.set_experts(experts, class, keys.layers, inner);
    } else if family == Family::DeepseekV3 {
        target.set("first_k_dense_replace", json!(keys.layers));
    }
    if let Some(architecture) = architecture(own, family) {
        target.set("architectures", json!([architecture]));
    }
    target.set_switches(names);
    target.set_dropout("attention_dropout", &ATTENTION_DROPOUT);
    target.set_dropout("hidden_dropout", &HIDDEN_DROPOUT);
    target.object
}

/// A config of a family under construction.
struct Target {
    object: Map<String, Value>,
    family: Family,
}

impl Target {
    /// Sets a key under the name that the family has for it.
    fn set(&mut self, key: &str, value: Value) {
        let aliases =
            facts().families.get(self.family.model_type()).map(|facts| &facts.config.aliases);
        let field = aliases.and_then(|aliases| aliases.get(key)).map_or(key, String::as_str);
        self.object.remove(key);
        self.object.insert(field.to_owned(), value);
    }

    /// Sets a key if the family knows it.
    fn set_known(&mut self, key: &str, value: Value) {
        let facts = facts().families.get(self.family.model_type());
        if facts.is_some_and(|facts| facts.config.defaults.contains_key(key)) {
            self.object.insert(key.to_owned(), value);
        }
    }

    /// Sets a rate of dropout that the family knows under one of many names.
    fn set_dropout(&mut self, key: &str, names: &[&str]) {
        let rate = names.iter().find_map(|name| self.object.get(*name)?.as_f64());
        if let Some(rate) = rate {
            self.set_known(key, json!(rate));
        }
    }

    fn set_experts(&mut self, experts: &ExpertKeys, class: StandInClass, layers: u64, inner: u64) {
        let every = class == StandInClass::EveryExpert;
        let width = experts.inner.unwrap_or(inner);
        let dense: Vec<u64> = (0..experts.dense_layers.min(layers)).collect();
        self.set_known("num_experts", json!(experts.count));
        self.set("num_local_experts", json!(experts.count));
        let per_token = if every { experts.count } else { experts.per_token };
        self.set("num_experts_per_tok", json!(per_token));
        self.set("moe_intermediate_size", json!(width));
        self.set("shared_expert_intermediate_size", json!(experts.shared.max(1)));
        self.set("decoder_sparse_step", json!(1));
        self.set("mlp_only_layers", json!(dense));
        if self.family == Family::DeepseekV3 {
            self.set("first_k_dense_replace", json!(experts.dense_layers));
            self.set("n_shared_experts", json!(experts.shared / width.max(1)));
        }
        if self.family == Family::Mixtral {
            self.set("intermediate_size", json!(width));
        }
    }

    /// Switches of another kind than the family expects would be refused; names of tensors know better.
    fn set_switches(&mut self, names: &TensorNames) {
        for key in ["attention_bias", "mlp_bias", "use_bias", "qkv_bias", "use_sliding_window"] {
            if self.object.get(key).is_some_and(|value| !value.is_boolean()) {
                self.object.remove(key);
            }
        }
        if let Some(has_bias) = names.has_attention_bias {
            for key in ["attention_bias", "qkv_bias"] {
                self.object.insert(key.to_owned(), json!(has_bias));
            }
        }
        if self.object.get("type_vocab_size").and_then(Value::as_u64) == Some(0) {
            self.object.remove("type_vocab_size");
        }
    }
}

/// The class of the family with the same head.
fn architecture(own: &Map<String, Value>, family: Family) -> Option<&'static str> {
    let first = own.get("architectures")?.get(0)?.as_str()?;
    let facts = facts().families.get(family.model_type())?;
    if first.ends_with("ForSequenceClassification") {
        return facts.classifier_class.as_deref();
    }
    let has_head = first.contains("For") || first.contains("LMHead");
    if has_head { None } else { facts.base_class.as_deref().filter(|_| first.ends_with("Model")) }
}
