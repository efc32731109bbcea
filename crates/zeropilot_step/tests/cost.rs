//! What a prediction costs: the same for any number of ranks.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use std::time::{Duration, Instant};

use zeropilot_config::resolve::{Circumstances, ResolvedConfig, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::catalogue;
use zeropilot_step::lower::{Conditions, Lowered, Recipe};
use zeropilot_step::memory::{Counting, Prediction};
use zeropilot_step::tape::Options;
use zeropilot_units::ElementSize;

const CONFIG: &str = r#"{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 16,
    "bf16": {"enabled": true}, "zero_optimization": {"stage": 3}}"#;

/// What the lowering of 126 layers and one prediction may cost together.
const LIMIT: Duration = Duration::from_millis(2);

fn resolved(world: usize) -> ResolvedConfig {
    let document = parse_json(CONFIG).unwrap();
    let circumstances = Circumstances::new(EngineVersion::NEWEST, world);
    resolve(document.root(), circumstances).resolved.unwrap()
}

/// The best of several.
fn time(world: u64, repetitions: u32) -> Duration {
    let model = catalogue::find("llama-3.1-405b").unwrap().model().unwrap();
    let resolved = resolved(world as usize);
    let zero = resolved.zero();
    let recipe = Recipe { checkpointing: true, ..Recipe::full(8192) };
    let once = || {
        let start = Instant::now();
        let conditions = Conditions::of(&zero, ElementSize::Two, 1, Options::default());
        let lowered = Lowered::new(&model, &recipe, &conditions).unwrap();
        let lowering = start.elapsed();
        let rank = lowered.rank(&resolved, &zero, world, 0);
        let prediction = Prediction::new(&lowered, &rank, Counting::default());
        assert!(!prediction.micro_steps.is_empty());
        println!("{world} ranks: lowering {lowering:?}, all {:?}", start.elapsed());
        start.elapsed()
    };
    (0..repetitions).map(|_| once()).min().unwrap()
}

#[test]
fn a_prediction_costs_the_same_for_8_ranks_and_for_100_000() {
    // By turns, so that a busy moment is one for both.
    let rounds: Vec<_> = (0..5).map(|_| (time(8, 10), time(100_000, 10))).collect();
    let few = rounds.iter().map(|(few, _)| *few).min().unwrap();
    let many = rounds.iter().map(|(_, many)| *many).min().unwrap();
    assert!(many < few * 2, "{few:?} for 8, {many:?} for 100,000");
    // Unoptimised code is slower, and so is a busy machine: run this one alone.
    if cfg!(not(debug_assertions)) {
        assert!(few < LIMIT, "{few:?}");
    }
}
