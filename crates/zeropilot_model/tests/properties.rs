//! What holds for every input: nothing panics, hangs or grows, and more layers are more parameters.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use zeropilot_model::lora::Lora;
use zeropilot_model::safetensors::{ShardIndex, StoredModel, parse_header};
use zeropilot_model::{ConfigError, Family, Model};

fn facts() -> Value {
    serde_json::from_str(include_str!("../../../knowledge/models/families.json")).expect("JSON")
}

/// The keys of any family, and some that every config has.
fn keys() -> Vec<String> {
    let mut keys: Vec<String> =
        ["architectures", "text_config", "vision_config", "audio_config", "dtype", "n_embed"]
            .map(str::to_owned)
            .to_vec();
    let facts = facts();
    let parts = facts["parts"].as_object().expect("parts").values();
    for family in facts["families"].as_object().expect("families").values().chain(parts) {
        keys.extend(family["defaults"].as_object().expect("defaults").keys().cloned());
        keys.extend(family["aliases"].as_object().expect("aliases").keys().cloned());
    }
    keys.sort();
    keys.dedup();
    keys
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..40).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        Just(json!(1_000_000_000_u64)),
        Just(json!(1_u64 << 30)),
        Just(json!(-1)),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-zA-Z-]{0,12}".prop_map(Value::from),
        Just(json!("gated-gelu")),
        Just(json!(["LlamaForSequenceClassification"])),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,8}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_config() -> impl Strategy<Value = Value> {
    let types: Vec<&str> = Family::ALL
        .iter()
        .map(|family| family.model_type())
        .chain(["chatglm", "kimi_k2", "unknown", "llama4_next"])
        .collect();
    let members = || prop::collection::vec((prop::sample::select(keys()), any_value()), 0..14);
    let sections = prop::sample::subsequence(vec!["text_config", "vision_config"], 0..=2);
    let inner = members().prop_map(|members| members.into_iter().collect::<Map<String, Value>>());
    (prop::sample::select(types), members(), sections, inner).prop_map(
        |(model_type, members, sections, inner)| {
            let mut config: Map<String, Value> = members.into_iter().collect();
            config.extend(
                sections.into_iter().map(|key| (key.to_owned(), Value::from(inner.clone()))),
            );
            config.insert("model_type".to_owned(), Value::from(model_type));
            Value::Object(config)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_config_is_a_model_or_an_error(config in any_config()) {
        if let Ok(model) = Model::from_config(&config.to_string()) {
            prop_assert!(model.count().trainable <= model.elements());
            prop_assert!(model.count().active <= model.elements());
            let listed: u64 = model.parameters().take(5000).filter_map(|entry| entry.parameter.elements()).sum();
            prop_assert!(listed <= model.elements().0);
            let _ = Lora::new(8).on_all_linear().apply(&model);
        }
    }

    #[test]
    fn any_text_is_a_model_or_an_error(text in "\\PC*") {
        let _ = Model::from_config(&text);
        let _ = ShardIndex::parse(&text);
    }

    #[test]
    fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_header(&bytes);
    }

    #[test]
    fn any_json_is_a_header_or_an_error(value in any_value()) {
        let json = value.to_string();
        let bytes = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
        if let Ok(header) = parse_header(&bytes) {
            let _ = StoredModel::new([header]).model();
        }
    }

    #[test]
    fn more_layers_are_more_parameters(family in prop::sample::select(Family::ALL), layers in 1_u64..200) {
        let facts = facts();
        let facts = &facts["families"][family.model_type()];
        let defaults = facts["defaults"].as_object().expect("defaults");
        let names = ["num_hidden_layers", "n_layer", "num_layers", "encoder_layers"];
        let key = names.into_iter().find(|key| defaults.contains_key(*key)).unwrap_or(names[0]);
        let count = |layers: u64| {
            let mut config = json!({"model_type": family.model_type(), "num_experts_per_tok": 2});
            // These have no default, and their classes build nothing without them.
            let needed = ["n_routed_experts", "n_shared_experts", "head_dim", "num_key_value_heads"];
            for key in needed.into_iter().filter(|key| defaults.get(*key) == Some(&Value::Null)) {
                config[key] = json!(1);
            }
            if facts["sections"].is_object() {
                config["text_config"] = json!({key: layers});
            } else {
                config[key] = Value::from(layers);
            }
            Model::from_config(&config.to_string()).expect("a model").elements()
        };
        prop_assert!(count(layers) < count(layers + 1));
    }
}

#[test]
fn impossible_sizes_are_refused() {
    let refused = |key: &str, value: Value| {
        let mut config = json!({"model_type": "llama"});
        config[key] = value;
        Model::from_config(&config.to_string()).unwrap_err()
    };
    for value in [json!(1_000_000_000_u64), json!(-1), json!(u64::MAX)] {
        assert!(matches!(refused("num_hidden_layers", value), ConfigError::OutOfRange { .. }));
    }
    for value in [json!(0), json!(-4096), json!(1_u64 << 40)] {
        assert!(matches!(refused("hidden_size", value), ConfigError::OutOfRange { .. }));
    }
    assert!(matches!(refused("hidden_size", json!("4096")), ConfigError::WrongKind { .. }));
    assert!(matches!(refused("vocab_size", json!(null)), ConfigError::MissingKey { .. }));
    assert!(matches!(refused("hidden_size", json!(4097)), ConfigError::NotAMultiple { .. }));
    let largest = json!({"model_type": "llama", "hidden_size": 1 << 30, "intermediate_size": 1 << 30,
        "num_hidden_layers": 1 << 14, "num_attention_heads": 1, "vocab_size": 1 << 30});
    assert_eq!(Model::from_config(&largest.to_string()), Err(ConfigError::TooLarge));
}

#[test]
fn errors_say_which_key() {
    let message = |text: &str| Model::from_config(text).unwrap_err().to_string();
    assert_eq!(message("{}"), "`model_type` is missing, so the model's family is unknown");
    assert_eq!(message("[]"), "the config is a list, not an object");
    assert_eq!(
        message(r#"{"model_type": "llama", "num_attention_heads": "32"}"#),
        "`num_attention_heads` must be a whole number, not text"
    );
    assert_eq!(
        message(
            r#"{"model_type": "qwen3", "layer_types": ["full_attention"], "num_hidden_layers": 2}"#
        ),
        "`layer_types` has 1 entries for 2 layers"
    );
    let unknown = Model::from_config(r#"{"model_type": "lama"}"#).unwrap_err();
    assert!(
        matches!(unknown, ConfigError::UnknownFamily { nearest: Some("llama"), .. }),
        "{unknown:?}"
    );
}

#[test]
fn a_large_model_costs_what_a_small_one_costs() {
    let config =
        |layers: u64| json!({"model_type": "llama", "num_hidden_layers": layers}).to_string();
    let nodes = |model: &Model| {
        fn below(module: &zeropilot_model::architecture::Module) -> usize {
            1 + module.children.iter().map(|child| below(&child.module)).sum::<usize>()
        }
        below(model.root())
    };
    let (small, large) =
        (Model::from_config(&config(1)).unwrap(), Model::from_config(&config(10_000)).unwrap());
    assert_eq!(nodes(&small), nodes(&large));
    assert_eq!(large.parameters().count(), 9 * 10_000 + 3);
}

#[test]
fn parts_are_frozen_by_fragments_of_their_names() {
    let model = Model::from_config(r#"{"model_type": "llama", "num_hidden_layers": 12}"#).unwrap();
    let frozen = model.freeze(&["embed_tokens", "layers.1."]);
    let names: Vec<String> = frozen
        .parameters()
        .filter(|entry| !entry.parameter.trainable)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names.len(), 1 + 9);
    assert!(names.iter().skip(1).all(|name| name.starts_with("model.layers.1.")));
    assert_eq!(frozen.elements(), model.elements());
    assert_eq!(model.frozen().count().trainable.0, 0);
    assert_eq!(model.train_only(&["lm_head"]).trainable().count(), 1);
}

#[test]
fn a_checkpoint_of_t5_may_hold_its_own_output() {
    let config = |tied: &str| format!(r#"{{"model_type": "t5", "tie_word_embeddings": {tied}}}"#);
    let loaded = Model::from_config(&config("false")).unwrap();
    let fresh = Model::from_config_with(&config("false"), zeropilot_model::Weights::Fresh).unwrap();
    assert_eq!(loaded.elements().0 - fresh.elements().0, 32128 * 512);
    assert_eq!(Model::from_config(&config("true")).unwrap().elements(), fresh.elements());
}
