//! Measured lists of calls, and ours beside them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "each test file uses a part of it"
)]

use serde_json::Value;
use zeropilot_step::program::StepProgram;
use zeropilot_step::traffic::{Call, calls};
use zeropilot_step::zero::{Collective, CollectiveKind};

/// Measured calls: count, kind, bytes per element, elements in, elements out, ranks, whether it is asynchronous. A kind
/// that no prediction has is an error.
fn measured(list: &Value) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    for call in list.as_array().into_iter().flatten() {
        let number = |index: usize| call[index].as_u64().unwrap();
        let (kind, elements) = match call[1].as_str().unwrap() {
            "all_gather_into_tensor" => (CollectiveKind::AllGather, number(4)),
            "reduce_scatter_tensor" => (CollectiveKind::ReduceScatter, number(3)),
            "all_reduce" => (CollectiveKind::AllReduce, number(3)),
            // The second step of a run also compares what its ranks recorded.
            "broadcast" => continue,
            other => {
                let to = other.strip_prefix("reduce->").ok_or(other)?.parse().unwrap();
                (CollectiveKind::Reduce { to }, number(3))
            }
        };
        let collective = Collective { kind, elements, element: number(2), ranks: number(5) };
        let call = Call { collective, is_async: number(6) == 1 };
        calls.extend(std::iter::repeat_n(call, number(0) as usize));
    }
    Ok(calls)
}

/// The first call that differs, if one does, and how many were compared.
pub fn difference(case: &Value, ours: &StepProgram) -> (Option<String>, usize) {
    let accumulation = ours.accumulation as usize;
    let steady = if case["traffic"].is_object() {
        &case["traffic"]["steady_step"]
    } else {
        &case["steady_step"]
    };
    let mut compared = 0;
    for micro in 0..accumulation {
        let last = ours.micro_steps.len() - 1;
        let ops = &ours.micro_steps[if micro + 1 == accumulation { last } else { micro.min(1) }];
        let theirs = &steady[format!("micro{micro}")];
        let step = if micro + 1 == accumulation { ours.step.as_slice() } else { &[] };
        let phases =
            [("forward", ops.forward.as_slice()), ("backward", &ops.backward), ("step", step)];
        for (phase, ops) in phases {
            let mut ours: Vec<Call> = calls(ops).collect();
            // A step that found an infinity ends there.
            if phase == "step" && case["overflow_steps"].is_array() {
                ours.truncate(1);
            }
            let theirs = match measured(&theirs[phase]) {
                Ok(calls) => calls,
                Err(kind) => {
                    let what = format!("{} micro {micro} {phase}: {kind}", case["name"]);
                    return (Some(what), compared);
                }
            };
            compared += theirs.len();
            if ours != theirs {
                let place = ours.iter().zip(&theirs).position(|(ours, theirs)| ours != theirs);
                let place = place.unwrap_or(ours.len().min(theirs.len()));
                let what = format!(
                    "{} micro {micro} {phase} call {place}: {:?}, measured {:?}",
                    case["name"],
                    ours.get(place),
                    theirs.get(place)
                );
                return (Some(what), compared);
            }
        }
    }
    (None, compared)
}
