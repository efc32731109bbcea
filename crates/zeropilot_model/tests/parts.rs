//! The parts of models that see or hear: what counts as which, what freezing one freezes, what its config says.

use serde_json::{Value, json};
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::QuantizedBase;
use zeropilot_model::{Family, Model, PartKind, Weights, catalogue};

fn model(name: &str) -> Model {
    catalogue::find(name).expect("an entry").model().expect("a model")
}

/// Name, elements and trainable elements of each part.
fn parts(model: &Model) -> Vec<(&'static str, u64, u64)> {
    let parts = model.parts().into_iter();
    parts.map(|part| (part.kind.name(), part.elements.0, part.trainable.0)).collect()
}

#[test]
fn a_model_of_text_is_one_part() {
    let llama = model("llama-3.1-8b");
    let all = llama.elements().0;
    assert_eq!(parts(&llama), [("language", all, all)]);
    assert_eq!(parts(&llama.freeze_part(PartKind::Vision)), [("language", all, all)]);
    assert_eq!(parts(&llama.freeze_part(PartKind::Language)), [("language", all, 0)]);
}

#[test]
fn freezing_the_tower_of_qwen_freezes_its_mergers() {
    let qwen = model("qwen2.5-vl-7b");
    let (vision, projector, language) = (631_975_680, 44_574_464, 7_615_616_512);
    assert_eq!(
        parts(&qwen),
        [
            ("vision", vision, vision),
            ("projector", projector, projector),
            ("language", language, language)
        ]
    );
    assert_eq!(
        parts(&qwen.freeze_part(PartKind::Vision)),
        [("vision", vision, 0), ("projector", projector, 0), ("language", language, language)]
    );
    assert_eq!(
        parts(&qwen.freeze_part(PartKind::Projector)),
        [("vision", vision, vision), ("projector", projector, 0), ("language", language, language)]
    );
    assert_eq!(
        parts(&qwen.freeze_part(PartKind::Language)),
        [
            ("vision", vision, vision),
            ("projector", projector, projector),
            ("language", language, 0)
        ]
    );
}

#[test]
fn freezing_the_tower_of_gemma_leaves_its_projector() {
    let frozen = model("gemma-3-4b").freeze_part(PartKind::Vision);
    let trainable: Vec<(&str, bool)> =
        parts(&frozen).into_iter().map(|(name, _, trainable)| (name, trainable > 0)).collect();
    assert_eq!(trainable, [("vision", false), ("projector", true), ("language", true)]);
}

#[test]
fn the_encoder_of_whisper_is_its_audio_part() {
    let whisper = model("whisper-large-v3");
    // The encoder's positions are never trained.
    assert_eq!(
        parts(&whisper),
        [("audio", 636_968_960, 636_968_960 - 1_920_000), ("language", 906_521_600, 906_521_600)]
    );
    assert!(!whisper.is_decoder_only());
}

#[test]
fn adapters_belong_to_the_part_they_adapt() {
    let qwen = model("qwen2.5-vl-7b");
    let adapted = Lora::new(8).on(&["q_proj", "v_proj"]).apply(&qwen).expect("adapters");
    let names = |model: &Model| -> Vec<&'static str> {
        parts(model).into_iter().filter(|(.., trainable)| *trainable > 0).map(|(n, ..)| n).collect()
    };
    assert_eq!(names(&adapted), ["language"]);
    let llava = model("llava-1.5-7b");
    // The names of CLIP's projections are those of Llama's.
    let adapted = Lora::new(8).on(&["q_proj", "v_proj"]).apply(&llava).expect("adapters");
    assert_eq!(names(&adapted), ["vision", "language"]);
    let adapted = Lora::new(8).on_all_linear().apply(&llava).expect("adapters");
    assert_eq!(names(&adapted), ["vision", "projector", "language"]);
    let frozen = adapted.freeze_part(PartKind::Vision);
    assert_eq!(names(&frozen), ["projector", "language"]);
}

#[test]
fn towers_and_projectors_are_quantized_too() {
    let gemma = model("gemma-3-4b");
    let nf4 = QuantizedBase::nf4();
    let quantized = |fragment: &str| {
        let entries = gemma.parameters().filter(|entry| entry.name.contains(fragment));
        entries.filter(|entry| nf4.includes(&gemma, entry)).count()
    };
    assert_eq!(quantized("vision_tower"), 27 * 6);
    assert_eq!(quantized("patch_embedding") + quantized("mm_input_projection_weight"), 0);
    let mixture = model("qwen3-vl-30b-a3b");
    let kept = nf4.size(&mixture).expect("a layout").kept;
    assert!(kept > mixture.count().routed);
}

#[test]
fn keys_of_the_text_model_may_be_at_the_top() {
    let text = json!({"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 2, "intermediate_size": 96, "vocab_size": 512});
    let vision = json!({"depth": 2, "hidden_size": 32, "out_hidden_size": 64, "num_heads": 2});
    let mut flat = text.clone();
    flat["model_type"] = json!("qwen2_5_vl");
    flat["vision_config"] = vision.clone();
    let nested = json!({"model_type": "qwen2_5_vl", "text_config": text, "vision_config": vision});
    let build = |config: &Value| Model::from_config(&config.to_string()).expect("a model");
    let (flat, nested) = (build(&flat), build(&nested));
    assert_eq!(flat.root(), nested.root());
    for model in [flat, nested] {
        let settings = model.settings().expect("settings");
        let text = settings.section("text_config").expect("a text config");
        assert_eq!(text.number("hidden_size"), Some(64));
        let vision = settings.section("vision_config").expect("a vision config");
        assert_eq!(vision.number("hidden_size"), Some(32));
        // Defaults of the tower's own class.
        assert_eq!(vision.number("patch_size"), Some(14));
        assert_eq!(vision.numbers("fullatt_block_indexes"), [7, 15, 23, 31]);
        assert_eq!(settings.section("audio_config"), None);
        assert_eq!(model.dimensions().expect("dimensions").hidden_size, 64);
        assert_eq!(model.language_family(), Some(Family::Qwen2));
        assert_eq!(model.language_settings().expect("settings").number("vocab_size"), Some(512));
    }
}

#[test]
fn a_checkpoint_may_hold_its_own_output_though_the_class_ties() {
    let small = json!({"hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 512});
    let build = |config: &Value, weights| {
        let model = Model::from_config_with(&config.to_string(), weights).expect("a model");
        model.has_tied_output()
    };
    let config = json!({"model_type": "mistral3", "text_config": small});
    assert!(!build(&config, Weights::Checkpoint));
    assert!(build(&config, Weights::Fresh));
    let mut said = config.clone();
    said["tie_word_embeddings"] = json!(true);
    assert!(build(&said, Weights::Checkpoint));
    let mut said = config;
    said["text_config"]["tie_word_embeddings"] = json!(true);
    assert!(build(&said, Weights::Checkpoint));
    // The text model of Gemma 3 ties by itself.
    assert!(build(&json!({"model_type": "gemma3"}), Weights::Checkpoint));
}

#[test]
fn a_text_model_alone_is_no_more_than_that() {
    let qwen = ["qwen2_vl_text", "qwen2_5_vl_text", "qwen3_vl_text", "qwen3_vl_moe_text"];
    for model_type in ["gemma3_text", "llama4_text"].into_iter().chain(qwen) {
        let model = Model::from_config(&json!({"model_type": model_type}).to_string());
        let model = model.expect("a model");
        assert_eq!(parts(&model).len(), 1, "{model_type}");
        assert_eq!(model.language_family(), model.family(), "{model_type}");
    }
}

#[test]
fn a_part_of_another_kind_is_named() {
    let message = |config: Value| Model::from_config(&config.to_string()).unwrap_err().to_string();
    assert_eq!(
        message(json!({"model_type": "llava", "vision_config": {"model_type": "vit"}})),
        "`vision_config` has the `model_type` `vit`, which zeropilot does not support there"
    );
    assert_eq!(
        message(json!({"model_type": "llava", "text_config": {"model_type": "gpt2"}})),
        "`text_config` has the `model_type` `gpt2`, which zeropilot does not support there"
    );
    assert_eq!(
        message(json!({"model_type": "gemma3", "vision_config": 7})),
        "`vision_config` must be an object, not a whole number"
    );
}
