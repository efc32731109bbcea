//! Models of an unknown `model_type` are answered by a similar structure, which says so.

use std::fs;

use serde_json::{Value, json};
use zeropilot_model::local::open;
use zeropilot_model::lora::Lora;
use zeropilot_model::{ConfigError, CountedFrom, Dtype, Family, Model, Names, StandInClass};

fn config(more: &[(&str, Value)]) -> String {
    let mut config = json!({
        "model_type": "brand_new", "hidden_size": 64, "num_hidden_layers": 3, "vocab_size": 1000,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96, "rms_norm_eps": 1e-6,
    });
    for (key, value) in more {
        config[*key] = value.clone();
    }
    config.to_string()
}

fn class(more: &[(&str, Value)]) -> (StandInClass, Family) {
    let model = Model::from_config(&config(more)).expect("a model");
    (model.stand_in().expect("a stand-in"), model.family().expect("a family"))
}

#[test]
fn the_keys_tell_the_class() {
    use StandInClass as C;
    let [experts, per_token] = [("num_experts", json!(8)), ("num_experts_per_tok", json!(2))];
    assert_eq!(class(&[]), (C::Gated, Family::Llama));
    assert_eq!(class(&[experts.clone(), per_token.clone()]), (C::Mixture, Family::Qwen3Moe));
    let shared = ("n_shared_experts", json!(1));
    assert_eq!(class(&[experts, per_token, shared]), (C::Mixture, Family::Qwen2Moe));
    assert_eq!(class(&[("hidden_act", json!("relu2"))]), (C::Ungated, Family::Starcoder2));
    let layer_norm = [("layer_norm_eps", json!(1e-5)), ("rms_norm_eps", Value::Null)];
    assert_eq!(class(&layer_norm).0, C::Ungated);
    assert_eq!(class(&[("attention_dropout", json!(0.1))]), (C::StoredScores, Family::Gemma2));
    assert_eq!(class(&[("mamba_d_state", json!(16))]).0, C::StateSpace);
    assert_eq!(
        class(&[("layer_types", json!(["conv", "conv", "full_attention"]))]).0,
        C::StateSpace
    );
    assert_eq!(class(&[("type_vocab_size", json!(2))]), (C::Encoder, Family::Bert));
    assert_eq!(class(&[("num_attention_heads", json!(5))]), (C::Gated, Family::Mistral));
}

#[test]
fn a_plain_decoder_counts_as_a_llama() {
    let model = Model::from_config(&config(&[])).expect("a model");
    let llama = Model::from_config(&config(&[("model_type", json!("llama"))])).expect("a model");
    assert_eq!(model.elements(), llama.elements());
    let names = Names::Likeness {
        of: "brand_new".to_owned(),
        class: StandInClass::Gated,
        counted: CountedFrom::Config,
        is_language_only: false,
    };
    assert_eq!(*model.names(), names);
    assert_eq!(*llama.names(), Names::Real);
}

#[test]
fn older_names_of_sizes_are_read_too() {
    let text = r#"{"model_type": "brand_new", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100,
        "layer_norm_epsilon": 1e-5}"#;
    let model = Model::from_config(text).expect("a model");
    let dimensions = model.dimensions().expect("dimensions");
    assert_eq!((dimensions.hidden_size, dimensions.intermediate_size), (64, 256));
    assert_eq!(model.family(), Some(Family::GptNeoX));
}

#[test]
fn heads_on_top_are_those_of_the_class() {
    let elements = |class: &str| {
        let text = config(&[("architectures", json!([class]))]);
        Model::from_config(&text).expect("a model").elements().0
    };
    let base = elements("BrandNewModel");
    assert_eq!(elements("BrandNewForCausalLM") - base, 64 * 1000);
    assert_eq!(elements("BrandNewForSequenceClassification") - base, 64 * 2);
}

#[test]
fn missing_sizes_are_named_with_what_to_do() {
    let error = Model::from_config(r#"{"model_type": "lama", "hidden_size": 64}"#).unwrap_err();
    let missing = vec!["num_hidden_layers", "vocab_size", "num_attention_heads"];
    assert_eq!(
        error,
        ConfigError::UnknownFamily {
            model_type: "lama".to_owned(),
            nearest: Some("llama"),
            missing
        }
    );
    let message = error.to_string();
    for part in ["`num_hidden_layers`", "`--like`", "`--params`"] {
        assert!(message.contains(part), "{message}");
    }
}

fn is_language_only(model: &Model) -> bool {
    matches!(model.names(), Names::Likeness { of, is_language_only: true, .. } if of == "brand_new_vl")
}

#[test]
fn an_unknown_whole_is_answered_by_its_language_model_and_says_so() {
    let text = json!({"model_type": "brand_new_vl", "dtype": "bfloat16", "vision_config": {"hidden_size": 32},
        "text_config": {"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}});
    let model = Model::from_config(&text.to_string()).expect("a model");
    assert_eq!((model.family(), model.dtype()), (Some(Family::Qwen2), Some(Dtype::Bf16)));
    assert!(is_language_only(&model));
    // Its language model is no known one, or has its keys at the top.
    let inner: Value = serde_json::from_str(&config(&[])).expect("JSON");
    let below = json!({"model_type": "brand_new_vl", "text_config": inner});
    let at_top = config(&[("model_type", json!("brand_new_vl")), ("vision_config", json!({}))]);
    for text in [below.to_string(), at_top] {
        let model = Model::from_config(&text).expect("a model");
        assert!(model.family() == Some(Family::Llama) && is_language_only(&model), "{text}");
    }
}

#[test]
fn a_family_can_be_named() {
    let model = Model::like(Family::Gpt2, &config(&[])).expect("a model");
    assert_eq!(model.family(), Some(Family::Gpt2));
    assert_eq!(model.dimensions().expect("dimensions").intermediate_size, 96);
    assert_eq!(model.stand_in(), Some(StandInClass::Ungated));
    let more = [("num_experts", json!(4)), ("n_shared_experts", json!(1))];
    for family in Family::ALL {
        match Model::like(*family, &config(&more)) {
            Ok(like) => assert!(like.stand_in().is_some() && like.elements().0 > 64 * 1000),
            // Nobody can say what tower another model has.
            Err(ConfigError::NotModelled { key }) => assert!(
                ["vision_config", "audio_config"].contains(&key.as_str()),
                "{family:?} {key}"
            ),
            // Its sizes are bound to each other in a way that no other config follows.
            Err(error) => assert!(matches!(family, Family::Mamba2 | Family::Whisper), "{error}"),
        }
    }
}

/// Tensors of a model whose blocks have a gate and whose heads have norms, with a tied output stored twice.
fn tensors() -> Vec<(String, Vec<u64>)> {
    let mut tensors = vec![
        ("model.embed_tokens.weight".to_owned(), vec![1000, 64]),
        ("lm_head.weight".to_owned(), vec![1000, 64]),
        ("model.norm.weight".to_owned(), vec![64]),
    ];
    for layer in 0..3 {
        let layer = |name: &str| format!("model.layers.{layer}.{name}.weight");
        tensors.extend([
            (layer("self_attn.q_proj"), vec![64, 64]),
            (layer("self_attn.k_proj"), vec![32, 64]),
            (layer("self_attn.v_proj"), vec![32, 64]),
            (layer("self_attn.o_proj"), vec![64, 64]),
            (layer("self_attn.q_norm"), vec![16]),
            (layer("mlp.gate_proj"), vec![96, 64]),
            (layer("mlp.up_proj"), vec![96, 64]),
            (layer("mlp.down_proj"), vec![64, 96]),
            (layer("odd_norm"), vec![64]),
        ]);
    }
    tensors
}

#[test]
fn files_tell_the_parameters_and_names_the_structure() {
    let directory = tempfile::tempdir().expect("a directory");
    let members: Vec<String> = tensors()
        .iter()
        .scan(0, |at, (name, shape)| {
            let end = *at + 2 * shape.iter().product::<u64>();
            let member =
                format!(r#""{name}": {{"dtype": "BF16", "shape": {shape:?}, "data_offsets": [{at}, {end}]}}"#);
            *at = end;
            Some(member)
        })
        .collect();
    let header = format!("{{{}}}", members.join(","));
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes()].concat();
    fs::write(directory.path().join("model.safetensors"), bytes).expect("a file");
    let text = config(&[("tie_word_embeddings", json!(true)), ("attention_dropout", json!(0))]);
    fs::write(directory.path().join("config.json"), text).expect("a file");
    let found = open(directory.path()).expect("a model");
    assert_eq!((found.config_error, found.comparison), (None, None));
    let model = found.model;
    assert_eq!(model.family(), Some(Family::Qwen3));
    assert!(matches!(model.names(), Names::Likeness { counted: CountedFrom::Tensors, .. }));
    assert!(model.has_tied_output());
    let once: u64 = tensors().iter().map(|(_, shape)| shape.iter().product::<u64>()).sum();
    assert_eq!(model.elements().0, once - 64_000);
    let adapted = Lora::new(4).on_all_linear().apply(&model).expect("adapters");
    // Seven matrices in each of three layers.
    assert_eq!(adapted.trainable().count(), 2 * 7 * 3);
}
