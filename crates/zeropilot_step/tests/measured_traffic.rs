//! The calls of the communication library in forward and backward of measured runs, one by one and in order.
//!
//! They show which parameters stage 3 gathers when, and where every bucket is cut.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

mod support;

use serde_json::Value;
use support::{micro_steps, traffic_cases};
use zeropilot_step::zero::{Collective, CollectiveKind};

/// A measured call: count, kind, bytes per element, elements in, elements out, ranks, whether it is asynchronous.
fn calls(list: &Value) -> Vec<Collective> {
    let mut calls = Vec::new();
    for call in list.as_array().unwrap() {
        let number = |index: usize| call[index].as_u64().unwrap();
        let (kind, elements) = match call[1].as_str().unwrap() {
            "all_gather_into_tensor" => (CollectiveKind::AllGather, number(4)),
            "reduce_scatter_tensor" => (CollectiveKind::ReduceScatter, number(3)),
            "all_reduce" => (CollectiveKind::AllReduce, number(3)),
            "broadcast" => continue,
            other => {
                let to = other.strip_prefix("reduce->").unwrap().parse().unwrap();
                (CollectiveKind::Reduce { to }, number(3))
            }
        };
        let call = Collective { kind, elements, element: number(2), ranks: number(5) };
        calls.extend(std::iter::repeat_n(call, number(0) as usize));
    }
    calls
}

#[test]
fn every_call_of_forward_and_backward() {
    let (mut equal, mut compared, mut different) = (0, 0, Vec::new());
    for case in traffic_cases() {
        let ours: Vec<_> = micro_steps(&case).into_iter().map(|micro| micro.calls).collect();
        let count = case["config"]["gradient_accumulation_steps"].as_u64().unwrap_or(1) as usize;
        let same = (0..count).all(|micro| {
            // Of many micro steps those between the first and the last are alike.
            let place = if micro + 1 == count { ours.len() - 1 } else { micro.min(1) };
            let [forward, backward] = &ours[place];
            let measured = &case["steady_step"][format!("micro{micro}")];
            compared += forward.len() + backward.len();
            calls(&measured["forward"]) == *forward && calls(&measured["backward"]) == *backward
        });
        equal += usize::from(same);
        if !same {
            different.push(case["name"].clone());
        }
    }
    println!("{equal} runs equal ({compared} calls), different: {different:?}");
    assert!(different.is_empty());
}
