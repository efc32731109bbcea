//! Real training runs of every family: states at rest, and the highest point of every phase.
//!
//! The runs used gloo, which lets go of its tensors on a thread of its own; such cases miss, from below.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod common;

use std::collections::BTreeMap;

use serde_json::Value;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Stage;
use zeropilot_config::syntax::parse_json;
use zeropilot_step::family::build;
use zeropilot_step::memory::steady_step;
use zeropilot_step::micro_step::{MicroStep, modules};
use zeropilot_step::tape::{Accounting, Options};
use zeropilot_step::zero::{
    Backend, BaseOptimizer, Category, Engine, Ledger, Parameter, Rest, RestStates, Run, init_peak,
    optimizer_step,
};
use zeropilot_units::{ElementSize, Elements};

/// Predictions of one case, by the name of the phase.
fn predict(case: &Value) -> BTreeMap<&'static str, i64> {
    let setup = common::setup(case).expect("a family");
    let program = build(&setup);
    let text = case["config"].to_string();
    let document = parse_json(&text).unwrap();
    let world = case["world"].as_u64().unwrap();
    let circumstances = Circumstances::new(EngineVersion::NEWEST, world as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let zero = resolved.zero();
    let sharded = zero.stage == Stage::Three;
    let parameters: Vec<Parameter> = program
        .model()
        .parameters
        .iter()
        .map(|info| Parameter {
            elements: Elements(info.parameter.elements),
            parts: 1,
            element: (sharded && info.parameter.element_bytes == 4).then_some(ElementSize::Four),
            trainable: info.parameter.is_trainable,
            group: 0,
        })
        .collect();
    let options = Options {
        accounting: Accounting::Recorded,
        module_events: sharded,
        zero3_linear: sharded,
        ..Options::default()
    };
    let micro_step = MicroStep::of(&*program, options);
    let gradient_order: Vec<usize> = micro_step.gradient_order().collect();
    let run = Run {
        parameters: &parameters,
        gradient_order: &gradient_order,
        engine: Engine::DeepSpeed,
        zero: &zero,
        precision: resolved.precision(),
        accumulation_type: resolved.gradient_accumulation_type(),
        communication_type: resolved.communication_type(),
        sequence_ranks: 1,
        tensor_ranks: 1,
        tensor_rank: 0,
        optimizer: if zero.offload_optimizer.is_some() {
            BaseOptimizer::CpuAdam
        } else {
            BaseOptimizer::FusedAdam
        },
        accumulation_steps: resolved.batch().unwrap().accumulation,
        version: resolved.version(),
        world,
        rank: case["rank"].as_u64().unwrap(),
    };
    let modules = modules(program.model());
    let steps = steady_step(&run, program.model(), &modules, &micro_step, &[], Backend::Gloo);
    let last = steps.last().unwrap();
    let states = RestStates::of(&run);
    let mut ledger = Ledger::without(&[Category::KernelTemporaries]);
    optimizer_step(&run, &mut ledger);
    let signed = |bytes: zeropilot_units::Bytes| bytes.0 as i64;
    BTreeMap::from([
        ("at_init", signed(states.after_init.total())),
        ("after_backward", signed(after_backward(case, states.after_backward.clone()).total())),
        ("after_step", signed(states.after_step.total())),
        ("end", signed(after_backward(case, last.end.clone()).total())),
        ("init", signed(init_peak(&run, common::loading(case)))),
        ("forward", signed(last.forward.total)),
        ("backward", signed(last.backward.total)),
        ("step", signed(ledger.peak())),
    ])
}

/// These runs recorded the first step, in which most optimizers have no state yet before the end.
fn after_backward(case: &Value, mut rest: Rest) -> Rest {
    for (category, name) in [
        (Category::FirstMoment, "opt_exp_avg"),
        (Category::SecondMoment, "opt_exp_avg_sq"),
        (Category::StepCounters, "opt_step"),
    ] {
        if case["after_backward"][name].is_null() {
            rest = rest.without(category);
        }
    }
    // Nor have parameters been gathered to stay.
    rest.without(Category::PersistentParameters)
}

fn at_rest(state: &Value) -> i64 {
    state.as_object().map_or(0, |parts| parts.values().filter_map(Value::as_i64).sum())
}

/// What a phase of a case was measured to be, without the buffers and scalars that are not modelled.
fn measured(case: &Value, phase: &str) -> i64 {
    let misc = case["misc"].as_i64().unwrap();
    match phase {
        "at_init" => at_rest(&case["init"]),
        "after_backward" | "end" => {
            let state = &case["after_backward"];
            at_rest(state) - state["param_data_persist"].as_i64().unwrap_or(0)
        }
        "after_step" => at_rest(&case["after_step"]),
        // Initialization comes before the batch.
        "init" => {
            let tokens = common::setup(case).unwrap().batch.tokens();
            case["peak"]["init"].as_i64().unwrap() + tokens as i64 * 8 - misc
        }
        _ => case["peak"][phase].as_i64().unwrap() - misc,
    }
}

/// Cases of a phase: how many there are, and those that are off by more than 2 KB (at rest: at all), in percent.
#[derive(Default)]
struct Phase {
    count: usize,
    misses: Vec<(f64, String)>,
}

#[test]
fn every_family_is_as_measured() {
    let mut phases: BTreeMap<&str, Phase> = BTreeMap::new();
    for case in common::cases("training.json") {
        // Without a finite loss the engine skipped the optimizer step.
        if !case["note"].is_null() {
            continue;
        }
        for (phase, ours) in predict(&case) {
            let measured = measured(&case, phase);
            let is_peak = matches!(phase, "init" | "forward" | "backward" | "step");
            let error = ours - measured;
            let row = phases.entry(phase).or_default();
            row.count += 1;
            if error.abs() > if is_peak { 2048 } else { 0 } {
                let percent = error as f64 / measured as f64 * 100.0;
                row.misses.push((percent, format!("{} rank {}", case["name"], case["rank"])));
            }
        }
    }
    for (phase, Phase { count, misses }) in &phases {
        println!("{phase:15} {:4} of {count:4}", count - misses.len());
        misses.iter().for_each(|(percent, name)| println!("    {percent:+.2} % {name}"));
    }
    let allowed = |phase: &str| match phase {
        // Prefetch groups around a shared embedding, and one expert block more than predicted.
        "forward" => (6, 10.0),
        // Gloo released a buffer late on one rank.
        "backward" => (2, 9.3),
        "init" => (7, 6.0),
        _ => (0, 0.0),
    };
    for (phase, Phase { misses, .. }) in phases {
        let (count, worst) = allowed(phase);
        assert!(misses.len() <= count, "{phase}: {misses:?}");
        assert!(misses.iter().all(|(percent, _)| percent.abs() <= worst), "{phase}: {misses:?}");
    }
}
