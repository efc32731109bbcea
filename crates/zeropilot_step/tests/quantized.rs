//! A quantized base under stage 3, as two ranks with bitsandbytes recorded it.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use serde_json::{Value, json};
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::QuantizedBase;
use zeropilot_step::lower::{Conditions, Fidelity, Lowered, Method, Recipe};
use zeropilot_step::memory::{Counting, Prediction};
use zeropilot_step::tape::Options;
use zeropilot_step::zero::{Category, Place};

const RECORDED: &str = include_str!("../../../knowledge/measured/quantized.json");
const WORLD: u64 = 2;

fn recorded() -> Vec<Value> {
    let file: Value = serde_json::from_str(RECORDED).unwrap();
    let cases = file["stage3"].as_array().unwrap().iter();
    // Adapters are what quantized bases are trained with.
    cases
        .filter(|case| case["ranks"][0]["error"].is_null() && case["lora"] != false)
        .cloned()
        .collect()
}

fn predict(case: &Value, checkpointing: bool) -> Prediction {
    let model = Model::from_config(&case["hf_config"].to_string()).unwrap();
    let section = json!({"quantization_config": case["quantization"]}).to_string();
    let projections = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"];
    let lora = Lora::new(4).on(&projections);
    let method = Method::QLora { lora, base: QuantizedBase::from_config(&section).unwrap() };
    let recipe = Recipe { method, checkpointing, ..Recipe::full(16) };
    let text = case["config"].to_string();
    let document = parse_json(&text).unwrap();
    let circumstances = Circumstances::new(EngineVersion::NEWEST, WORLD as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let (zero, element) = (resolved.zero(), resolved.precision().element_size());
    let conditions = Conditions::of(&zero, element, 1, Options::default());
    let lowered = Lowered::new(&model, &recipe, &conditions).unwrap();
    assert_eq!(lowered.fidelity(), Fidelity::Own);
    let rank = lowered.rank(&resolved, &zero, WORLD, 0);
    Prediction::new(&lowered, &rank, Counting::default())
}

#[test]
fn every_rank_loads_all_of_it_and_keeps_its_share_with_all_scales() {
    let cases = recorded();
    assert!(cases.len() >= 4);
    for case in cases {
        let ours = predict(&case, false);
        let rank = &case["ranks"][0];
        let bytes = |state: &str, what: &str| rank[state][what].as_u64().unwrap();
        let share = bytes("initialized", "plain_part") + bytes("initialized", "packed_part");
        let weights = [Category::FlatParameters, Category::FrozenPartitions];
        let after: u64 =
            weights.map(|it| ours.states.after_init.of_at(it, Place::Device).0).iter().sum();
        assert_eq!(after, share, "{}", case["name"]);
        // Two copies of the rotary frequencies of a head of 24 are buffers too; int8 frees no weight.
        let kept = bytes("initialized", "state") + 12 * 4 * 2;
        let is_int8 = case["quantization"]["load_in_8bit"] == true;
        let whole = if is_int8 { bytes("loaded", "packed") } else { 0 };
        assert_eq!(ours.buffers.0, kept + whole, "{}", case["name"]);
        // Built whole, with the adapters.
        let built = bytes("loaded", "packed") + 2 * bytes("initialized", "plain_part");
        let init = ours.init.at_device_peak.total().0;
        assert!(init >= built, "{}: {init} {built}", case["name"]);
    }
}

/// One-byte tensors rose by all packed weights but those of the first layer's q, k and v, whose input needs no gradient.
#[test]
fn without_checkpointing_backward_finds_the_gathered_weights_still_there() {
    let mut case = recorded().into_iter().find(|case| case["persistence"] == 0).unwrap();
    // As in the recorded step, the engine's first: nothing is prefetched, nothing is kept to be used again.
    case["config"]["zero_optimization"]["stage3_prefetch_bucket_size"] = json!(0);
    case["config"]["zero_optimization"]["stage3_max_reuse_distance"] = json!(0);
    let rank = &case["ranks"][0];
    let integers = |state: &str| rank[state]["integers"].as_u64().unwrap();
    let held = integers("forward") - integers("initialized");
    let gathered = |checkpointing: bool| {
        let micro_step = predict(&case, checkpointing).micro_steps.last().unwrap().clone();
        let peak = micro_step.backward.at_device_peak;
        peak.of_at(Category::GatheredParameters, Place::Device).0
    };
    let (all, few) = (gathered(false), gathered(true));
    println!("held {held}, gathered at the peak {all}, with checkpointing {few}");
    assert!(all >= held && few < held);
}
