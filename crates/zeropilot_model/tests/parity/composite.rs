//! Configs of models that see or hear: sub-configs that fit each other, each at random left out, or flat.

use serde_json::{Map, Value, json};
use zeropilot_oracle::Random;

use crate::generator::text;

/// Language models that a config may name.
fn languages(model_type: &str) -> &'static [&'static str] {
    match model_type {
        "paligemma" => &["gemma", "gemma2"],
        "mistral3" => &["mistral", "ministral3"],
        _ => &["llama", "mistral", "qwen2", "qwen3", "gemma2", "phi3", "granite", "glm4"],
    }
}

/// Towers that a config may name.
fn towers(model_type: &str) -> &'static [&'static str] {
    match model_type {
        "gemma3" | "paligemma" => &["siglip_vision_model"],
        "qwen2_audio" => &["qwen2_audio_encoder"],
        _ => &["clip_vision_model", "pixtral", "siglip_vision_model"],
    }
}

/// A config of a family with sub-configs.
pub(crate) fn config(random: &mut Random, model_type: &str, facts: &Value) -> Value {
    let family = &facts["families"][model_type];
    let mut config = Map::new();
    for (key, default) in family["defaults"].as_object().expect("defaults") {
        if random.chance(50)
            && let Some(value) = outer(random, key, default)
        {
            config.insert(key.clone(), value);
        }
    }
    for (key, section) in family["sections"].as_object().expect("sections") {
        if random.chance(4) {
            continue;
        }
        let choice = match key.as_str() {
            "text_config" => languages(model_type),
            _ => towers(model_type),
        };
        let replaced = section["replaceable"] == true && random.chance(70);
        let default = section["model_type"].as_str().expect("text");
        let class = if replaced { *random.pick(choice) } else { default };
        let known = [&facts["families"][class], &facts["parts"][class]];
        let known = known.into_iter().find(|facts| facts.is_object()).expect("a class");
        let mut keys = match key.as_str() {
            "text_config" => text(random, class, known),
            _ => tower(random, class, known),
        };
        if replaced {
            keys.insert("model_type".to_owned(), json!(class));
        }
        // The text model may tie on its own, whether its class has the key or not.
        if key == "text_config" && random.chance(30) {
            keys.insert("tie_word_embeddings".to_owned(), json!(random.chance(50)));
        }
        if section["flat"] == true && random.chance(40) {
            keys.remove("head_dim");
            config.extend(keys);
        } else {
            config.insert(key.clone(), Value::Object(keys));
        }
    }
    if random.chance(30) {
        config.insert("architectures".to_owned(), json!([family["language_model_class"]]));
    }
    config.insert("model_type".to_owned(), json!(model_type));
    Value::Object(config)
}

fn outer(random: &mut Random, key: &str, default: &Value) -> Option<Value> {
    Some(match key {
        "vision_feature_layer" if random.chance(50) => json!(-2),
        "vision_feature_layer" => {
            json!(vec![-2; usize::try_from(random.between(1, 3)).expect("small")])
        }
        "spatial_merge_size" | "scale_factor" => json!(random.between(1, 4)),
        "projection_dim" => json!(random.between(1, 900)),
        "downsample_ratio" => json!(*random.pick(&[0.5, 0.25, 1.0, 0.3, 0.7])),
        _ if default.is_boolean() => json!(random.chance(50)),
        _ => return None,
    })
}

/// The keys of a part that sees or hears.
fn tower(random: &mut Random, class: &str, facts: &Value) -> Map<String, Value> {
    let heads = random.between(1, 5);
    let width = heads * 8 * random.between(1, 9);
    let mut config = Map::new();
    let with_width = random.chance(85);
    let has_own_width = !facts["defaults"]["embed_dim"].is_null();
    let patch = random.between(1, 20);
    let fitting = random.chance(85);
    for (key, default) in facts["defaults"].as_object().expect("defaults") {
        let value = match key.as_str() {
            "hidden_size" if has_own_width => json!(random.between(1, 900)),
            "hidden_size" | "embed_dim" | "d_model" if with_width => json!(width),
            "embed_dim" => continue,
            "num_heads" | "num_attention_heads" | "attention_heads" if with_width => json!(heads),
            "encoder_attention_heads" if with_width => json!(heads),
            "num_hidden_layers" | "depth" | "num_global_layers" | "encoder_layers" => {
                json!(random.between(1, 4))
            }
            "patch_size" if fitting => json!(patch),
            "image_size" if fitting && default.is_array() && random.chance(50) => {
                json!([patch * random.between(1, 12), patch * random.between(1, 12)])
            }
            "image_size" if fitting => json!(patch * random.between(1, 12) + patch / 2),
            _ if random.chance(25) => continue,
            "deepstack_visual_indexes" | "fullatt_block_indexes" => {
                json!(vec![0; usize::try_from(random.between(0, 3)).expect("small")])
            }
            "spatial_merge_size" | "temporal_patch_size" | "mlp_ratio" | "num_channels" => {
                json!(random.between(1, 4))
            }
            "norm_type" => json!(*random.pick(&["layer_norm", "rms_norm"])),
            _ if default.is_boolean() => json!(random.chance(50)),
            key if is_size(key) => json!(random.between(1, 700)),
            _ => continue,
        };
        config.insert(key.clone(), value);
    }
    if class == "siglip_vision_model" && random.chance(70) {
        config.insert("vision_use_head".to_owned(), json!(random.chance(30)));
    }
    config
}

fn is_size(key: &str) -> bool {
    ["intermediate_size", "out_hidden_size", "_dim", "in_channels", "num_position_embeddings"]
        .iter()
        .chain(&["encoder_ffn_dim", "num_mel_bins", "max_source_positions"])
        .any(|part| key.ends_with(part))
}
