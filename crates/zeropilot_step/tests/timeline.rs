//! The picture of a step: it reaches what the answer says, and no state leaves it between backward and the update.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::catalogue;
use zeropilot_step::lower::{Conditions, Lowered, Recipe};
use zeropilot_step::memory::{Counting, Phase, Prediction, Stretch, timeline};
use zeropilot_step::tape::{Kernels, Options};
use zeropilot_step::zero::{Category, Place};

const WORLD: u64 = 8;

fn drawn(zero: &str) -> (Vec<Stretch>, Prediction) {
    let text = format!(
        r#"{{"train_micro_batch_size_per_gpu": 1, "bf16": {{"enabled": true}}, "zero_optimization": {zero}}}"#
    );
    let document = parse_json(&text).unwrap();
    let circumstances = Circumstances::new(EngineVersion::NEWEST, WORLD as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let zero = resolved.zero();
    let options = Options { kernels: Kernels::Cuda, ..Options::default() };
    let conditions = Conditions::of(&zero, resolved.precision().element_size(), 1, options);
    let model = catalogue::find("qwen3-8b").unwrap().model().unwrap();
    let lowered = Lowered::new(&model, &Recipe::full(2048), &conditions).unwrap();
    let rank = lowered.rank(&resolved, &zero, WORLD, 0);
    let prediction = Prediction::new(&lowered, &rank, Counting::default());
    (timeline(&lowered, &rank, Counting::default(), 200), prediction)
}

const SETTINGS: [&str; 5] = [
    r#"{"stage": 0}"#,
    r#"{"stage": 1}"#,
    r#"{"stage": 2}"#,
    r#"{"stage": 3}"#,
    r#"{"stage": 2, "offload_optimizer": {"device": "cpu"}}"#,
];

#[test]
fn every_phase_reaches_what_is_predicted() {
    for zero in SETTINGS {
        let (stretches, prediction) = drawn(zero);
        for phase in [Phase::Forward, Phase::Backward, Phase::Step] {
            let of_phase = stretches.iter().filter(|it| it.phase == phase);
            let highest = of_phase.map(|it| it.alive.at(Place::Device)).max().unwrap();
            assert_eq!(highest, prediction.peak(phase).at(Place::Device), "{zero} {phase:?}");
        }
        let forward = stretches.iter().filter(|it| it.phase == Phase::Forward).count();
        assert!(forward > 50, "{zero}: forward is {forward} stretches");
    }
}

#[test]
fn an_update_begins_with_what_backward_leaves() {
    for zero in SETTINGS {
        let (stretches, prediction) = drawn(zero);
        let first = stretches.iter().find(|it| it.phase == Phase::Step).unwrap();
        for category in [Category::Master, Category::FirstMoment, Category::SecondMoment] {
            let held = prediction.states.after_backward.of_at(category, Place::Device);
            assert_eq!(first.alive.of_at(category, Place::Device), held, "{zero} {category:?}");
        }
    }
}
