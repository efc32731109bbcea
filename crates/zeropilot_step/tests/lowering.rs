//! Models of the catalogue have the program that is theirs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use std::collections::BTreeMap;

use zeropilot_config::settings::LeafModules;
use zeropilot_model::{Model, StandInClass, catalogue};
use zeropilot_step::lower::{Conditions, Fidelity, Lowered, Recipe};
use zeropilot_step::tape::Options;
use zeropilot_units::ElementSize;

/// Families without a program of their own.
const LENT: [&str; 38] = [
    "Some(Cohere)",
    "Some(Cohere2)",
    "Some(DeepseekV2)",
    "Some(Gemma)",
    "Some(Gemma3)",
    "Some(Glm)",
    "Some(Glm4)",
    "Some(Glm4Moe)",
    "Some(GptJ)",
    "Some(GptOss)",
    "Some(Granite)",
    "Some(GraniteMoe)",
    "Some(Idefics3)",
    "Some(InternVl)",
    "Some(Llama4)",
    "Some(Llama4Text)",
    "Some(Llava)",
    "Some(Ministral3)",
    "Some(Mistral3)",
    "Some(Mllama)",
    "Some(ModernBert)",
    "Some(Olmo)",
    "Some(Olmo2)",
    "Some(Olmo3)",
    "Some(Olmoe)",
    "Some(PaliGemma)",
    "Some(Phi)",
    "Some(Phimoe)",
    "Some(Qwen2_5Vl)",
    "Some(Qwen2Vl)",
    "Some(Qwen3Vl)",
    "Some(Qwen3VlMoe)",
    "Some(Roberta)",
    "Some(SmolLm3)",
    "Some(SmolVlm)",
    "Some(StableLm)",
    "Some(Starcoder2)",
    "Some(Whisper)",
];

/// Models of the others that are built in a way no program knows: grouped Falcon, OPT with projections.
const UNUSUAL: [&str; 3] = ["tiiuae/falcon-180B", "tiiuae/falcon-40b", "facebook/opt-350m"];

#[test]
fn programs_have_the_parameters_of_their_models() {
    let conditions = Conditions {
        micro_batch: 1,
        element: ElementSize::Two,
        options: Options::default(),
        leaf_modules: LeafModules::default(),
    };
    let mut lent: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut own = 0;
    for entry in catalogue::entries() {
        let model = entry.model().unwrap();
        let lowered = Lowered::new(&model, &Recipe::full(128), &conditions).unwrap();
        match lowered.fidelity() {
            Fidelity::Own => own += 1,
            Fidelity::StandIn(family) => lent
                .entry(format!("{:?} by {family:?}", model.family()))
                .or_default()
                .push(&entry.id),
        }
    }
    // Families whose models all have one; of these others have models with an unusual switch.
    let families: Vec<&String> = lent.keys().collect();
    for (what, names) in &lent {
        let is_unusual = names.iter().all(|name| UNUSUAL.contains(name));
        let is_lent = LENT.iter().any(|family| what.contains(family));
        assert!(is_lent || is_unusual, "{what}: {names:?} of {families:?}");
    }
    println!("{own} of {} have their own program", catalogue::entries().len());
    for (what, names) in &lent {
        println!("{what}: {names:?}");
    }
}

/// Only what is not followed to the byte has bounds, and those are of its class.
#[test]
fn a_stand_in_says_how_far_it_may_be_off() {
    let conditions = Conditions {
        micro_batch: 1,
        element: ElementSize::Two,
        options: Options::default(),
        leaf_modules: LeafModules::default(),
    };
    let lowered = |model: &Model, checkpointing: bool| {
        let recipe = Recipe { checkpointing, ..Recipe::full(128) };
        Lowered::new(model, &recipe, &conditions).unwrap()
    };
    let sizes = r#""hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 1000, "num_attention_heads": 4"#;
    let known = Model::from_config(&format!(r#"{{"model_type": "llama", {sizes}}}"#)).unwrap();
    assert_eq!(lowered(&known, false).stand_in_error(), None);
    let unknown =
        Model::from_config(&format!(r#"{{"model_type": "brand_new", {sizes}}}"#)).unwrap();
    for checkpointing in [false, true] {
        let lowered = lowered(&unknown, checkpointing);
        assert_ne!(lowered.fidelity(), Fidelity::Own);
        let error = StandInClass::Gated.error(checkpointing);
        assert_eq!(lowered.stand_in_error(), Some(error));
    }
    let lent = catalogue::find("gpt-oss-20b").unwrap().model().unwrap();
    let error = StandInClass::StoredScores.error(false);
    assert_eq!(lowered(&lent, false).stand_in_error(), Some(error));
    // No model with a tower was recorded.
    let sees = Model::from_config(r#"{"model_type": "llava"}"#).unwrap();
    assert_ne!(lowered(&sees, false).fidelity(), Fidelity::Own);
    assert_eq!(lowered(&sees, false).stand_in_error(), None);
}
