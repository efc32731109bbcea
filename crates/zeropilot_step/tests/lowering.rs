//! Models of the catalogue have the program that is theirs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use std::collections::BTreeMap;

use zeropilot_model::catalogue;
use zeropilot_step::lower::{Conditions, Fidelity, Lowered, Recipe};
use zeropilot_step::tape::Options;
use zeropilot_units::ElementSize;

/// Families without a program of their own.
const LENT: [&str; 25] = [
    "Some(Cohere)",
    "Some(Cohere2)",
    "Some(DeepseekV2)",
    "Some(Gemma)",
    "Some(Glm)",
    "Some(Glm4)",
    "Some(Glm4Moe)",
    "Some(GptJ)",
    "Some(GptOss)",
    "Some(Granite)",
    "Some(GraniteMoe)",
    "Some(Llama4Text)",
    "Some(Ministral3)",
    "Some(ModernBert)",
    "Some(Olmo)",
    "Some(Olmo2)",
    "Some(Olmo3)",
    "Some(Olmoe)",
    "Some(Phi)",
    "Some(Phimoe)",
    "Some(Roberta)",
    "Some(SmolLm3)",
    "Some(StableLm)",
    "Some(Starcoder2)",
    "Some(Whisper)",
];

/// Models of the others that are built in a way no program knows: grouped Falcon, OPT with projections.
const UNUSUAL: [&str; 3] = ["tiiuae/falcon-180B", "tiiuae/falcon-40b", "facebook/opt-350m"];

#[test]
fn programs_have_the_parameters_of_their_models() {
    let conditions =
        Conditions { micro_batch: 1, element: ElementSize::Two, options: Options::default() };
    let mut lent: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut own = 0;
    for entry in catalogue::entries() {
        let model = entry.model().unwrap();
        let lowered = Lowered::new(&model, &Recipe::full(128), conditions).unwrap();
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
