//! Every shortcut gives what the long way gives, for random models, recipes, configs and ranks.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod common;
mod random;

use std::collections::BTreeMap;

use random::{Question, dice};
use zeropilot_step::cuda::{Allocation, Allocator, Before, Gradients, Settings, replay};
use zeropilot_step::family::{build, micro_step};
use zeropilot_step::lower::Conditions;
use zeropilot_step::memory::{nth_step, steady_step};
use zeropilot_step::micro_step::{Item, MicroStep};
use zeropilot_step::model::ParameterId;
use zeropilot_step::tape::{Kernels, Listener, Options, Storage, StorageId};
use zeropilot_step::zero::Swing;
use zeropilot_units::Bytes;

const QUESTIONS: u64 = 120;

/// In these a gather nobody needed outlives the optimizer step.
const LEAVES_A_GATHER: [u64; 2] = [1686, 2826];

/// The third step, run in full after two others, is the one that is told.
#[test]
fn a_steady_step_is_the_third_one_run_in_full() {
    let mut compared = 0;
    for seed in (0..QUESTIONS).chain(LEAVES_A_GATHER) {
        let question = Question::new(seed);
        let answer = question.ask(|lowered, resolved, zero| {
            let rank = lowered.rank(resolved, zero, question.world, question.rank);
            let (run, backend) = (lowered.run(&rank), question.counting.backend);
            let (model, modules, step) = (lowered.model(), lowered.modules(), lowered.micro_step());
            let short = steady_step(&run, model, modules, step, &[], backend);
            let long = nth_step(&run, model, modules, step, &[], backend, 2);
            // Not `assert_eq`: thousands of calls would be printed.
            assert!(short == long, "{question:?}");
        });
        compared += u32::from(answer.is_some());
    }
    println!("{compared} questions compared");
    assert!(compared > 100);
}

/// Items with their swings instead of the places of those.
fn told<'a>(step: &'a MicroStep, items: &'a [Item]) -> Vec<(Option<&'a Swing>, Option<Item>)> {
    let tell = |item: &Item| match step.swing(*item) {
        Some(swing) => (Some(swing), None),
        None => (None, Some(*item)),
    };
    items.iter().map(tell).collect()
}

fn is_same(one: &MicroStep, other: &MicroStep) -> bool {
    told(one, &one.forward) == told(other, &other.forward)
        && told(one, &one.backward) == told(other, &other.backward)
}

#[test]
fn layers_told_again_are_layers_run_again_in_every_measured_setup() {
    let mut dice = dice(7);
    let (mut compared, mut repeated) = (0, 0);
    for case in common::cases("training.json") {
        let Some(mut setup) = common::setup(&case) else { continue };
        setup.shape.layers = dice.between(1, 16);
        setup.switches.checkpointing ^= dice.one_in(2);
        let is_stage_3 = dice.one_in(2);
        let options =
            Options { module_events: is_stage_3, zero3_linear: is_stage_3, ..Options::default() };
        let program = build(&setup);
        let (short, long) =
            (MicroStep::of_layers(&setup, &*program, options), MicroStep::of(&*program, options));
        assert!(is_same(&short, &long), "{} {setup:?} {options:?}", case["name"]);
        compared += 1;
        // Only then a swing is kept once for several layers.
        repeated += u32::from(short.swings.len() < long.swings.len());
    }
    println!("{compared} setups compared, {repeated} of them repeated");
    assert!(compared > 100 && repeated > 30);
}

#[test]
fn layers_told_again_are_layers_run_again_in_models_of_the_catalogue() {
    let mut compared = 0;
    for seed in 1000..1000 + QUESTIONS {
        let question = Question::new(seed);
        let answer = question.ask(|lowered, resolved, _| {
            let conditions = Conditions::of(
                &resolved.zero(),
                resolved.precision().element_size(),
                question.micro_batch,
                question.options,
            );
            let attention = question.recipe.attention;
            let options = Options { attention, ..conditions.options };
            let long = MicroStep::of(lowered.program(), options);
            assert!(is_same(lowered.micro_step(), &long), "{question:?}");
        });
        compared += u32::from(answer.is_some());
    }
    println!("{compared} questions compared");
    assert!(compared > 100);
}

/// Everything a micro step allocates, on the allocator, round after round.
struct AllRounds {
    allocator: Allocator,
    gradients: Gradients,
    alive: BTreeMap<StorageId, Allocation>,
    kept: Vec<Allocation>,
}

impl Listener for AllRounds {
    fn allocate(&mut self, id: StorageId, storage: Storage) {
        self.alive.insert(id, self.allocator.allocate(storage.bytes).unwrap());
    }

    fn free(&mut self, id: StorageId, _storage: Storage) {
        self.allocator.free(self.alive.remove(&id).unwrap());
    }

    fn gradient(&mut self, _parameter: ParameterId, id: StorageId, _storage: Storage) {
        let gradient = self.alive.remove(&id).unwrap();
        match self.gradients {
            Gradients::Kept => self.kept.push(gradient),
            Gradients::Bucketed => self.allocator.free(gradient),
        }
    }
}

/// Rounds that would bring nothing new are left out; here all are run, and two more.
#[test]
fn a_replay_that_stops_early_reserves_what_the_long_one_does_in_every_measured_setup() {
    const ROUNDS: usize = 5;
    let mut dice = dice(11);
    let mut compared = 0;
    for case in common::cases("training.json") {
        let Some(mut setup) = common::setup(&case) else { continue };
        setup.switches.checkpointing ^= dice.one_in(2);
        setup.batch.length *= dice.between(1, 64);
        setup.batch.target_length *= dice.between(1, 64);
        let gradients = if dice.one_in(2) { Gradients::Kept } else { Gradients::Bucketed };
        let settings = Settings { expandable_segments: dice.one_in(3), ..Settings::default() };
        let resident = Bytes(dice.between(0, 2) * (7 << 20));
        let options = Options { kernels: Kernels::Cuda, ..Options::default() };
        let trace = micro_step(&*build(&setup), options);
        let allocator = Allocator::new(settings);
        let mut long = AllRounds { allocator, gradients, alive: BTreeMap::new(), kept: Vec::new() };
        long.allocator.allocate(resident.0).unwrap();
        for _ in 0..ROUNDS {
            trace.replay(&mut long);
            let left = std::mem::take(&mut long.kept).into_iter();
            for allocation in left.chain(std::mem::take(&mut long.alive).into_values()) {
                long.allocator.free(allocation);
            }
        }
        let short = replay(
            &[trace],
            &Before { resident: vec![resident], ..Before::default() },
            gradients,
            settings,
        )
        .unwrap();
        let long = (long.allocator.peak_allocated(), long.allocator.peak_reserved());
        assert_eq!((short.allocated, short.reserved), long, "{} {setup:?}", case["name"]);
        compared += 1;
    }
    println!("{compared} setups compared");
    assert!(compared > 100);
}
