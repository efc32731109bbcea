//! Configs of every family: all keys that can change a shape, each at random present or left out.

use serde_json::{Map, Value, json};
use zeropilot_oracle::Random;

use crate::composite;

/// Numbers that must fit each other.
struct Sizes {
    hidden: u64,
    heads: u64,
    kv_heads: u64,
    layers: u64,
    experts: u64,
}

impl Sizes {
    fn draw(random: &mut Random) -> Self {
        // Real widths now and then: on the meta device they cost nothing.
        let real = random.chance(20);
        let kv_heads = random.between(1, 4);
        let heads = kv_heads * if real { 16 } else { random.between(1, 4) };
        let width = if real { *random.pick(&[64, 80, 96, 128]) } else { 2 * random.between(1, 12) };
        Self {
            hidden: heads * width,
            heads,
            kv_heads,
            layers: random.between(1, 4),
            experts: random.between(1, 12),
        }
    }
}

/// A config of a family that transformers accepts.
pub(crate) fn config(random: &mut Random, model_type: &str, facts: &Value) -> Value {
    let family = &facts["families"][model_type];
    if family["sections"].is_object() {
        return composite::config(random, model_type, facts);
    }
    let mut config = text(random, model_type, family);
    let base = family["base_class"].as_str().filter(|_| random.chance(12));
    if let Some(base) = base {
        config.insert("architectures".to_owned(), json!([base]));
    } else if model_type.ends_with("t5")
        || family["classifier_class"].is_null()
        || random.chance(75)
    {
        if random.chance(30) {
            config.insert("architectures".to_owned(), json!([family["language_model_class"]]));
        }
    } else {
        config.insert("architectures".to_owned(), json!([family["classifier_class"]]));
        labels(random, &mut config);
    }
    config.insert("model_type".to_owned(), json!(model_type));
    Value::Object(config)
}

/// The keys of a model that reads text.
pub(crate) fn text(random: &mut Random, model_type: &str, facts: &Value) -> Map<String, Value> {
    let sizes = Sizes::draw(random);
    let defaults = facts["defaults"].as_object().expect("defaults");
    let aliases = facts["aliases"].as_object().expect("aliases");
    let mut config = Map::new();
    // Hidden size and heads are left out together, or their defaults would not fit.
    let with_width = random.chance(92);
    for (key, default) in defaults {
        let width = is_hidden(key) || is_heads(key);
        if if width { !with_width } else { !is_needed(key) && random.chance(15) } {
            continue;
        }
        let Some(value) = value(random, key, default, &sizes) else { continue };
        let mut names = aliases.iter().filter(|(_, target)| *target == key).map(|(alias, _)| alias);
        let alias = names.next().filter(|_| random.chance(15));
        config.insert(alias.unwrap_or(key).clone(), value);
    }
    extra(random, model_type, &sizes, &mut config);
    config
}

fn labels(random: &mut Random, config: &mut Map<String, Value>) {
    match random.between(0, 2) {
        0 => {}
        1 => drop(config.insert("num_labels".to_owned(), json!(random.between(1, 9)))),
        _ => drop(config.insert("id2label".to_owned(), json!({"0": "a", "1": "b", "2": "c"}))),
    }
}

/// Keys that are no fields of the config class and are read all the same.
fn extra(random: &mut Random, model_type: &str, sizes: &Sizes, config: &mut Map<String, Value>) {
    let reads_head_dim = !matches!(
        model_type,
        "bert"
            | "roberta"
            | "xlm-roberta"
            | "modernbert"
            | "whisper"
            | "t5"
            | "mt5"
            | "gpt2"
            | "gptj"
            | "gpt_neo"
            | "gpt_neox"
            | "gpt_bigcode"
            | "opt"
            | "bloom"
            | "falcon"
    );
    if reads_head_dim && random.chance(20) && !config.contains_key("head_dim") {
        config.insert("head_dim".to_owned(), json!(2 * random.between(1, 20)));
    }
    if matches!(model_type, "bloom" | "falcon")
        && random.chance(20)
        && config.contains_key("hidden_size")
    {
        let smaller = sizes.hidden / sizes.heads.max(1) * sizes.heads * 2;
        config.insert("n_embed".to_owned(), json!(smaller));
    }
    if model_type == "gpt_neo" {
        config.insert("num_layers".to_owned(), json!(sizes.layers));
        config.remove("num_hidden_layers");
        config.insert("attention_types".to_owned(), json!([[["global"], sizes.layers]]));
    }
    if model_type == "t5" && random.chance(50) {
        config.insert("tie_word_embeddings".to_owned(), json!(random.chance(50)));
    }
    if model_type == "deepseek_v3" && random.chance(50) {
        config.insert("num_nextn_predict_layers".to_owned(), json!(random.between(0, 2)));
    }
    // Its attention does not fall back to the hidden size.
    if model_type == "hunyuan_v1_dense" && random.chance(80) {
        config.insert("head_dim".to_owned(), json!(2 * random.between(1, 40)));
    }
    mixers(random, model_type, sizes, config);
    if random.chance(40) {
        let dtype = *random.pick(&["float16", "bfloat16", "float32"]);
        config.insert((*random.pick(&["torch_dtype", "dtype"])).to_owned(), json!(dtype));
    }
}

/// Keys of state spaces, delta rules and convolutions, which must fit each other.
fn mixers(random: &mut Random, model_type: &str, sizes: &Sizes, config: &mut Map<String, Value>) {
    let names = ["hidden_size", "num_heads", "num_attention_heads"];
    let has_width = names.iter().any(|name| config.contains_key(*name));
    let (hidden, heads) = if has_width { (sizes.hidden, sizes.heads) } else { (4096, 128) };
    let mut set = |key: &str, value: Value| drop(config.insert(key.to_owned(), value));
    let expand = random.between(1, 3);
    match model_type {
        "mamba2" => {
            set("expand", json!(expand));
            set("head_dim", json!(hidden * expand / heads));
        }
        "falcon_h1" if random.chance(60) => {
            let heads = random.between(1, 8);
            set("mamba_n_heads", json!(heads));
            set("mamba_d_ssm", json!(heads * random.between(1, 64)));
        }
        "falcon_h1" | "granitemoehybrid" => {
            set("mamba_n_heads", json!(heads));
            set("mamba_expand", json!(expand));
            set("mamba_d_head", json!(hidden * expand / heads));
        }
        _ => {}
    }
    match model_type {
        "falcon_h1" if !config.contains_key("mamba_d_ssm") => {
            config.insert("mamba_d_ssm".to_owned(), Value::Null);
        }
        "granitemoehybrid" if random.chance(25) => {
            config.insert("num_local_experts".to_owned(), json!(0));
        }
        "lfm2" => {
            let factor = *random.pick(&[0.5, 1.0, 1.3]);
            config.insert("block_ffn_dim_multiplier".to_owned(), json!(factor));
        }
        _ => {}
    }
    let kinds: &[&str] = match model_type {
        "granitemoehybrid" => &["mamba", "attention", "linear_attention", "full_attention"],
        "qwen3_next" | "qwen3_5_text" | "qwen3_5_moe_text" => {
            &["linear_attention", "full_attention"]
        }
        "lfm2" => &["conv", "full_attention"],
        _ => return,
    };
    if random.chance(60) {
        let kinds: Vec<&str> = (0..sizes.layers).map(|_| *random.pick(kinds)).collect();
        config.insert("layer_types".to_owned(), json!(kinds));
    } else if model_type == "lfm2" && random.chance(60) {
        config.insert("full_attn_idxs".to_owned(), json!([0, 2]));
    } else if model_type.starts_with("qwen3") && random.chance(50) {
        config.insert("full_attention_interval".to_owned(), json!(random.between(1, 4)));
    }
}

fn is_hidden(key: &str) -> bool {
    matches!(key, "hidden_size" | "n_embd" | "d_model")
}

fn is_heads(key: &str) -> bool {
    matches!(
        key,
        "num_attention_heads"
            | "n_head"
            | "num_heads"
            | "encoder_attention_heads"
            | "decoder_attention_heads"
            | "num_key_value_heads"
            | "num_kv_heads"
    )
}

/// Left out, these would have defaults that do not fit the others, or cost time.
fn is_needed(key: &str) -> bool {
    key.contains("layers")
        || key.contains("expert")
        || key.contains("layer")
        || key.ends_with("group")
}

fn value(random: &mut Random, key: &str, default: &Value, sizes: &Sizes) -> Option<Value> {
    Some(match key {
        key if is_hidden(key) => json!(sizes.hidden),
        "num_key_value_heads" | "num_kv_heads" => match default {
            Value::Null if random.chance(25) => Value::Null,
            _ => json!(sizes.kv_heads),
        },
        key if is_heads(key) => json!(sizes.heads),
        "num_hidden_layers" | "n_layer" | "num_layers" | "encoder_layers" => json!(sizes.layers),
        "num_decoder_layers" => random.chance(50).then(|| json!(random.between(1, 3)))?,
        "decoder_layers" => json!(random.between(1, 3)),
        // Above every default of a padding token.
        "vocab_size" => json!(random.between(202_048, 300_000)),
        "head_dim" => match default {
            Value::Null if random.chance(50) => Value::Null,
            _ => json!(2 * random.between(1, 40)),
        },
        "d_kv" | "qk_rope_head_dim" | "qk_nope_head_dim" | "v_head_dim" => {
            json!(2 * random.between(1, 40))
        }
        "q_lora_rank" => maybe(random, 90),
        "n_inner" | "ffn_hidden_size" => maybe(random, 900),
        "word_embed_proj_dim" => match random.between(0, 2) {
            0 => Value::Null,
            1 => json!(sizes.hidden),
            _ => json!(random.between(1, 90)),
        },
        "num_ln_in_parallel_attn" => random.chance(60).then(|| json!(random.between(1, 2)))?,
        "num_experts" | "num_local_experts" | "n_routed_experts" | "moe_num_experts" => {
            json!(sizes.experts)
        }
        "num_experts_per_tok" | "moe_k" => json!(random.between(1, sizes.experts)),
        "moe_num_shared_experts" => json!(random.between(0, 3)),
        "moe_layer_interval" => json!(random.between(1, 3)),
        "moe_layer_start_index" => json!(random.between(0, sizes.layers)),
        "moe_layer_end_index" if random.chance(50) => json!(-1),
        "moe_layer_end_index" => json!(random.between(0, sizes.layers)),
        "n_shared_experts" => json!(random.between(0, 3)),
        "first_k_dense_replace" => json!(random.between(0, sizes.layers + 1)),
        "n_group" | "topk_group" => json!(1),
        "decoder_sparse_step" | "interleave_moe_layer_step" => json!(random.between(1, 3)),
        "mlp_only_layers" | "moe_layers" | "cross_attention_layers" => {
            let layers: Vec<u64> = (0..sizes.layers).filter(|_| random.chance(40)).collect();
            random.chance(50).then(|| json!(layers))?
        }
        "mamba_n_groups" | "n_groups" | "mamba_d_conv" | "conv_kernel" | "conv_L_cache" => {
            json!(random.between(1, 5))
        }
        "linear_conv_kernel_dim" => json!(random.between(1, 5)),
        "mamba_d_state" | "state_size" | "block_multiple_of" => json!(random.between(1, 300)),
        key if key.starts_with("linear_") => json!(random.between(1, 40)),
        "num_mtp_layers" => return None,
        "feed_forward_proj" => json!(*random.pick(&["relu", "gated-gelu", "gated-silu"])),
        "is_decoder" | "add_cross_attention" | "use_weighted_layer_sum" => return None,
        "use_sliding_window" | "reorder_and_upcast_attn" | "use_bidirectional_attention" => {
            return None;
        }
        "mask_time_length" | "mask_feature_length" | "median_filter_width" => return None,
        key if default.is_boolean() && !key.starts_with("summary") => json!(random.chance(50)),
        key if is_size(key) => json!(random.between(1, 2000)),
        _ => return None,
    })
}

/// A size, or null.
fn maybe(random: &mut Random, most: u64) -> Value {
    if random.chance(60) { json!(random.between(1, most)) } else { Value::Null }
}

fn is_size(key: &str) -> bool {
    ["intermediate_size", "ffn_dim", "d_ff", "max_position", "n_positions", "_rank", "_buckets"]
        .iter()
        .chain(&["type_vocab_size", "num_mel_bins", "source_positions", "target_positions"])
        .any(|part| key.contains(part))
}
