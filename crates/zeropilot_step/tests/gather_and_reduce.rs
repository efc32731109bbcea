//! Small runs whose gathers and reductions can be followed by hand.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod support;

use serde_json::json;
use support::with_run;
use zeropilot_step::zero::gather::{Event, EventKind, Gatherer, Modules};
use zeropilot_step::zero::reduction::Reducer;
use zeropilot_step::zero::{Backend, Category, Ledger, Parameter, Place, Run, Sink};
use zeropilot_units::Elements;

const SIZES: [u64; 3] = [10, 6, 7];

/// A run of three parameters in bf16 on two ranks.
fn with_small_run<T>(zero: serde_json::Value, answer: impl Fn(&Run<'_>) -> T) -> T {
    let parameters = SIZES.map(|size| Parameter {
        elements: Elements(size),
        parts: 1,
        element: None,
        trainable: true,
        group: 0,
    });
    let case = json!({
        "config": {
            "train_micro_batch_size_per_gpu": 1,
            "bf16": { "enabled": true },
            "optimizer": { "type": "AdamW", "params": { "lr": 1e-3 } },
            "zero_optimization": zero,
        },
        "world": 2,
        "rank": 0,
        "two_groups": false,
        "model": { "h": 8, "a": 1, "k": 1, "i": 1, "v": 1, "L": 0 },
    });
    with_run(&case, |run| {
        answer(&Run { parameters: &parameters, gradient_order: &[2, 1, 0], ..run.clone() })
    })
}

/// Three modules in a row, forward and backward.
fn micro_step(gatherer: &mut Gatherer<'_>, ledger: &mut Ledger) -> Vec<u64> {
    let mut alive = Vec::new();
    gatherer.begin_micro_step(ledger);
    let forward = (0..3).map(|module| (module, EventKind::EnterForward, EventKind::LeaveForward));
    let backward =
        (0..3).rev().map(|module| (module, EventKind::EnterBackward, EventKind::LeaveBackward));
    for (module, enter, leave) in forward.chain(backward) {
        gatherer.event(Event { kind: enter, module }, ledger);
        alive.push(ledger.total().0);
        gatherer.event(Event { kind: leave, module }, ledger);
    }
    gatherer.end_backward(ledger);
    alive
}

fn modules() -> Modules {
    let mut modules = Modules::default();
    (0..SIZES.len()).for_each(|parameter| {
        modules.push([parameter]);
    });
    modules
}

#[test]
fn without_prefetch_and_reuse_only_the_module_at_work_is_gathered() {
    let zero = json!({
        "stage": 3,
        "stage3_param_persistence_threshold": 0,
        "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 0,
    });
    with_small_run(zero, |run| {
        let (modules, mut ledger) = (modules(), Ledger::new());
        let mut gatherer = Gatherer::new(run, &modules, Backend::Nccl, &mut ledger);
        for _ in 0..3 {
            // 7 elements are padded to 8 for two ranks; nothing separates the last forward from the first backward.
            assert_eq!(micro_step(&mut gatherer, &mut ledger), [20, 12, 16, 16, 12, 20]);
            assert_eq!(ledger.total().0, 0);
        }
    });
}

#[test]
fn a_prefetched_group_costs_twice_its_size_until_all_of_it_has_been_needed() {
    let zero = json!({ "stage": 3, "stage3_param_persistence_threshold": 0 });
    with_small_run(zero, |run| {
        let (modules, mut ledger) = (modules(), Ledger::new());
        let mut gatherer = Gatherer::new(run, &modules, Backend::Nccl, &mut ledger);
        // While recording nothing is prefetched and everything is released at once.
        assert_eq!(micro_step(&mut gatherer, &mut ledger), [20, 12, 16, 16, 12, 20]);
        // Then the first module brings the others with it: a flat buffer of 12 + 16 bytes, and with the second module
        // copies of 12 + 14. Within the default limits nothing is released before its last use.
        assert_eq!(micro_step(&mut gatherer, &mut ledger), [48, 74, 46, 46, 32, 20]);
    });
}

#[test]
fn persistent_parameters_stay_after_the_first_step() {
    let zero = json!({
        "stage": 3,
        "stage3_param_persistence_threshold": 7,
        "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 0,
    });
    with_small_run(zero, |run| {
        let (modules, mut ledger) = (modules(), Ledger::new());
        let mut gatherer = Gatherer::new(run, &modules, Backend::Nccl, &mut ledger);
        micro_step(&mut gatherer, &mut ledger);
        gatherer.release_all(&mut ledger);
        gatherer.gather_persistent(&mut ledger);
        assert_eq!(ledger.alive().of(Category::PersistentParameters).0, 12 + 16);
        assert_eq!(micro_step(&mut gatherer, &mut ledger), [48, 28, 28, 28, 28, 48]);
    });
}

#[test]
fn a_held_storage_outlives_the_release_of_its_parameter() {
    let zero = json!({
        "stage": 3,
        "stage3_param_persistence_threshold": 0,
        "stage3_prefetch_bucket_size": 0,
        "stage3_max_reuse_distance": 0,
    });
    with_small_run(zero, |run| {
        let (modules, mut ledger) = (modules(), Ledger::new());
        let mut gatherer = Gatherer::new(run, &modules, Backend::Nccl, &mut ledger);
        gatherer.begin_micro_step(&mut ledger);
        gatherer.event(Event { kind: EventKind::EnterForward, module: 0 }, &mut ledger);
        let hold = gatherer.hold(0).unwrap();
        gatherer.event(Event { kind: EventKind::LeaveForward, module: 0 }, &mut ledger);
        assert_eq!(ledger.total().0, 20);
        gatherer.let_go(hold, &mut ledger);
        assert_eq!(ledger.total().0, 0);
    });
}

#[test]
fn a_share_on_the_host_is_copied_to_the_device_to_be_gathered() {
    let zero = json!({
        "stage": 3,
        "stage3_param_persistence_threshold": 0,
        "offload_param": { "device": "cpu" },
    });
    let peak = |backend| {
        with_small_run(zero.clone(), |run| {
            let (modules, mut ledger) = (modules(), Ledger::new());
            let mut gatherer = Gatherer::new(run, &modules, backend, &mut ledger);
            gatherer.begin_micro_step(&mut ledger);
            gatherer.event(Event { kind: EventKind::EnterForward, module: 0 }, &mut ledger);
            ledger.peak_in(Place::Device).0
        })
    };
    assert_eq!((peak(Backend::Gloo), peak(Backend::Nccl)), (20, 30));
}

/// Hands all gradients over and says what was alive after each, and after the end of backward.
fn backward(reducer: &mut Reducer<'_>, ledger: &mut Ledger) -> Vec<u64> {
    let mut alive = Vec::new();
    reducer.begin_backward(true, ledger);
    for parameter in [2, 1, 0] {
        let gradient = ledger.allocate(Category::Gradients, Place::Device, SIZES[parameter] * 2);
        reducer.ready(parameter, gradient, ledger);
        alive.push(ledger.total().0);
    }
    reducer.end_backward(ledger);
    alive.push(ledger.total().0);
    alive
}

#[test]
fn stage_two_keeps_what_the_rank_owns() {
    with_small_run(json!({ "stage": 2, "reduce_bucket_size": 8 }), |run| {
        let (mut reducer, mut ledger) = (Reducer::new(run, Backend::Nccl), Ledger::new());
        // A bucket of 16 bytes. The first two fit one by one, the last is larger than a bucket. Rank 0 owns the first
        // 12 of 24 elements: all of the 10, and 2 of the 6, which counts in full.
        assert_eq!(backward(&mut reducer, &mut ledger), [16, 16, 16 + 32 + 20, 32]);
        assert_eq!(ledger.alive().of(Category::AveragedGradients).0, 32);
        reducer.end_step(&mut ledger);
        assert_eq!(ledger.total().0, 0);
    });
}

#[test]
fn stage_one_keeps_all_gradients_until_the_end_of_backward() {
    with_small_run(json!({ "stage": 1, "reduce_bucket_size": 100 }), |run| {
        let (mut reducer, mut ledger) = (Reducer::new(run, Backend::Nccl), Ledger::new());
        assert_eq!(backward(&mut reducer, &mut ledger), [200 + 14, 200 + 26, 200 + 46, 32]);
    });
}

#[test]
fn stage_three_interleaves_shares_before_it_scatters_them() {
    let zero = json!({ "stage": 3, "reduce_bucket_size": 13 });
    let peak = |backend| {
        with_small_run(zero.clone(), |run| {
            let (mut reducer, mut ledger) = (Reducer::new(run, backend), Ledger::new());
            assert_eq!(backward(&mut reducer, &mut ledger), [0, 0, 0, 0]);
            ledger.peak().0
        })
    };
    // 7 + 6 elements fill the bucket; the 10 make it go out, padded to 8 + 6, while they wait.
    assert_eq!((peak(Backend::Nccl), peak(Backend::Gloo)), (20 + 28, 20 + 28 + 28));
}
