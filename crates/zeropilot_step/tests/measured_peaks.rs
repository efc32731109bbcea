//! The highest points of measured runs of the real engine, phase by phase.
//!
//! The runs used gloo, which lets go of its tensors on a thread of its own: the same run repeated gives now this, now
//! that many bytes more on one rank or another. Such cases are the ones that miss, always from below.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod support;

use std::collections::BTreeMap;

use serde_json::Value;
use support::{cases, micro_steps, with_run};
use zeropilot_step::memory::MicroStepPeaks;
use zeropilot_step::zero::{Category, Dtypes, Ledger, RestStates, Run, init_peak, optimizer_step};

/// Scalars and small integer tensors that are not modelled.
const NEAR: i64 = 2048;

/// Prediction minus measurement of every case.
struct Comparison {
    phase: &'static str,
    cases: Vec<Value>,
    errors: Vec<i64>,
}

impl Comparison {
    fn new(phase: &'static str, predict: impl Fn(&Value) -> u64) -> Self {
        let cases = cases();
        let error = |case: &Value| {
            let measured = case["peak"][phase].as_i64().unwrap();
            let misc = case["misc"].as_i64().unwrap();
            // Buffers of the model and the batch; initialization comes before the batch.
            let batch = if phase == "init" { support::tokens(case) as i64 * 8 } else { 0 };
            predict(case) as i64 + misc - batch - measured
        };
        let errors = cases.iter().map(error).collect();
        Self { phase, cases, errors }
    }

    fn percent(&self, index: usize) -> f64 {
        self.errors[index] as f64 / self.cases[index]["peak"][self.phase].as_f64().unwrap() * 100.0
    }

    /// Prints how near each set is and what misses by most.
    fn print(&self) {
        let mut sets = BTreeMap::<&str, (usize, usize, f64)>::new();
        for (index, error) in self.errors.iter().enumerate() {
            let set = sets.entry(self.cases[index]["set"].as_str().unwrap()).or_default();
            set.0 += usize::from(error.abs() <= NEAR);
            set.1 += 1;
            set.2 =
                if self.percent(index).abs() > set.2.abs() { self.percent(index) } else { set.2 };
        }
        println!("{:>9} | set | within 2 KB | worst", self.phase);
        for (set, (near, all, worst)) in sets {
            println!("{:>9} | {set:>3} | {near:>4} of {all:>4} | {worst:+.2} %", "");
        }
        let mut missed: Vec<usize> =
            (0..self.errors.len()).filter(|&i| self.errors[i].abs() > NEAR).collect();
        missed.sort_by(|&a, &b| self.percent(b).abs().total_cmp(&self.percent(a).abs()));
        for index in missed {
            let case = &self.cases[index];
            println!(
                "  {:+.2} % {} rank {}: {} B",
                self.percent(index),
                case["name"],
                case["rank"],
                self.errors[index]
            );
        }
    }

    /// At most this many cases may miss, and none by more than this many percent.
    fn assert(&self, missed: usize, percent: f64) {
        self.print();
        let misses = self.errors.iter().filter(|error| error.abs() > NEAR).count();
        assert!(misses <= missed, "{}: {misses} cases miss", self.phase);
        for index in 0..self.cases.len() {
            assert!(
                self.percent(index).abs() <= percent,
                "{}: {}",
                self.phase,
                self.cases[index]["name"]
            );
        }
    }
}

#[test]
fn initialization() {
    let predicted = Comparison::new("init", |case| {
        with_run(case, |run| init_peak(run, support::loading(case)).0)
    });
    // While hooks are attached every parameter is gathered once. Where gloo has not let go of those before, two or
    // three are alive; repeated runs of one config show now this, now that.
    predicted.assert(87, 11.0);
    for (case, error) in
        predicted.cases.iter().zip(&predicted.errors).filter(|(_, error)| error.abs() > NEAR)
    {
        assert!(with_run(case, |run| some_gathered(run, case)), "{} {error}", case["name"]);
    }
}

/// Whether a measured initialization ended with two or three neighbouring parameters gathered.
fn some_gathered(run: &Run<'_>, case: &Value) -> bool {
    let rest = RestStates::of(run).after_init.total().0 + case["misc"].as_u64().unwrap();
    let measured = case["peak"]["init"].as_u64().unwrap() + support::tokens(case) * 8;
    let bytes = |index: &usize| {
        run.parameters[*index].elements.0.next_multiple_of(run.world) * Dtypes::of(run).model
    };
    let mut order: Vec<usize> = (0..run.parameters.len()).collect();
    order.sort_by_key(|&index| run.parameters[index].group);
    let together =
        order.windows(2).chain(order.windows(3)).map(|some| some.iter().map(bytes).sum::<u64>());
    together.into_iter().any(|bytes| (rest + bytes).abs_diff(measured) <= NEAR as u64)
}

#[test]
fn step() {
    let predicted = Comparison::new("step", |case| {
        with_run(case, |run| {
            // The recorder sees tensors, not what a kernel allocates inside.
            let mut ledger = Ledger::without(&[Category::KernelTemporaries]);
            optimizer_step(run, &mut ledger);
            ledger.peak().0
        })
    });
    // The one miss is the buffer of an all-reduce that gloo still held.
    predicted.assert(1, 20.1);
}

/// The micro step that was measured.
fn last(case: &Value) -> MicroStepPeaks {
    micro_steps(case).pop().unwrap()
}

#[test]
fn forward() {
    Comparison::new("forward", |case| last(case).forward.total.0).assert(1, 1.0);
}

#[test]
fn backward() {
    Comparison::new("backward", |case| last(case).backward.total.0).assert(20, 5.5);
}

#[test]
fn hooks_and_gathers_leave_what_is_at_rest() {
    for case in cases() {
        let rest = with_run(&case, |run| RestStates::of(run).after_backward.total().0);
        assert_eq!(last(&case).end.total().0, rest, "{} rank {}", case["name"], case["rank"]);
    }
}
