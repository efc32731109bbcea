//! Recorded runs of models that see or hear, asked as a user would ask: the highest point of every phase.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod common;
mod public_path;

use public_path::{Table, predict};
use serde_json::Value;
use zeropilot_step::lower::Fidelity;

/// Token ids, labels, masks and token types of a token, and the buffers of a model: what the recordings hold beside the
/// tensors that are predicted, apart from pixels and sound.
const OTHERS_PER_TOKEN: i64 = 40;
const BUFFERS: i64 = 4096;

/// Bytes of pixels, or of sound.
fn seen_or_heard(case: &Value) -> i64 {
    let config = &case["hf_config"];
    let vision = &config["vision_config"];
    let number = |value: &Value| value.as_i64().or_else(|| value[0].as_i64()).unwrap_or(0);
    let images = case["images"].as_array().map_or(&[][..], Vec::as_slice);
    match config["model_type"].as_str().unwrap() {
        "whisper" => {
            let is_half = case["config"]["bf16"].is_object() || case["config"]["fp16"].is_object();
            let sequences = case["config"]["train_micro_batch_size_per_gpu"].as_i64().unwrap();
            let values =
                2 * number(&config["max_source_positions"]) * number(&config["num_mel_bins"]);
            sequences * values * if is_half { 2 } else { 4 }
        }
        kind if kind.starts_with("qwen") => {
            let patch = number(&vision["patch_size"]);
            let patches = |grid: &Value| -> i64 {
                grid.as_array().unwrap().iter().map(|side| side.as_i64().unwrap()).product()
            };
            images.iter().map(|grid| patches(grid) * 3 * 2 * patch * patch * 4 + 24).sum()
        }
        _ => images.len() as i64 * 3 * number(&vision["image_size"]).pow(2) * 4,
    }
}

#[test]
fn models_that_see_or_hear_are_as_measured() {
    let mut table = Table::default();
    for case in common::cases("towers.json") {
        let tokens = case["seq"].as_i64().unwrap()
            * case["config"]["train_micro_batch_size_per_gpu"].as_i64().unwrap();
        for rank in case["ranks"].as_array().unwrap() {
            let (ours, fidelity) = predict(&case, rank["rank"].as_u64().unwrap());
            assert_eq!(fidelity, Fidelity::Own, "{}", case["name"]);
            let peak = |phase: &str| rank["peak"][phase].as_i64().unwrap();
            // Everything but the batch and the buffers is predicted for the step.
            let others = peak("step") - ours.step.total.0 as i64;
            let rest = others - seen_or_heard(&case);
            assert!(
                (0..=OTHERS_PER_TOKEN * tokens + BUFFERS).contains(&rest),
                "{}: {rest} bytes beside the predicted ones",
                case["name"]
            );
            let last = ours.micro_steps.last().unwrap();
            let phases = [("forward", last.forward.total), ("backward", last.backward.total)];
            let differences = phases.map(|(phase, ours)| {
                let theirs = peak(phase);
                (format!("peak {phase}"), (ours.0 as i64 + others - theirs, theirs))
            });
            let name = format!("{} rank {}", case["name"], rank["rank"]);
            table.add(&name, differences.into_iter().collect());
        }
    }
    table.print();
    for (what, least, most) in [("peak forward", 0.98, 2.5), ("peak backward", 0.96, 7.0)] {
        let (near, worst) = table.of(what);
        assert!(near >= least && worst <= most, "{what}: {near} within 2 KB, worst {worst} %");
    }
}
