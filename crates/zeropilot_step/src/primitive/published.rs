//! Single operators as published from GPUs (`knowledge/field/operators.jsonl`), against the tape with CUDA's kernels.
//!
//! The published figure is the peak of `max_memory_allocated` over steps of forward and backward: inputs, weights and
//! the gradients of the step before are alive all the time.

use serde::Deserialize;

use crate::head::Labels;
use crate::model::{Label, Model, Parameter};
use crate::primitive::LinearKind;
use crate::shape::Batch;
use crate::tape::{Event, Kernels, Mark, NoRerun, Options, Tape, Trace};

#[derive(Debug, Deserialize)]
#[allow(non_snake_case, reason = "the names in the benchmark")]
struct Row {
    id: String,
    kernel: String,
    B: Option<u64>,
    T: Option<u64>,
    H: Option<u64>,
    V: Option<u64>,
    M: Option<u64>,
    N: Option<u64>,
    BT: Option<u64>,
    measured_mib: f64,
}

fn tape() -> Tape {
    Tape::new(Options { kernels: Kernels::Cuda, ..Options::default() })
}

fn parameter(elements: u64, bytes: u8) -> Parameter {
    let mut model = Model::default();
    let top = model.add_module(None, Label::Top, &std::collections::BTreeSet::new()).id;
    model.add_parameter(top, "weight", elements, bytes, true)
}

/// The most bytes alive.
fn peak(trace: &Trace) -> u64 {
    let (mut now, mut most) = (0, 0);
    for event in &trace.events {
        match event {
            Event::Allocate(id) => now += trace.storages[id.index()].bytes,
            Event::Free(id) => now -= trace.storages[id.index()].bytes,
            _ => {}
        }
        most = most.max(now);
    }
    most
}

/// Bytes of the inputs, of the gradients they had before, and of everything a step makes beside them.
fn cross_entropy(rows: u64, vocabulary: u64) -> u64 {
    let tape = tape();
    let logits = rows * vocabulary * 4;
    {
        let input = tape.require_grad(tape.outside(rows * vocabulary, 4));
        let loss = tape.plain_cross_entropy(&input);
        tape.backward(&loss, &NoRerun);
    }
    2 * logits + peak(&tape.into_trace())
}

fn head(rows: u64, hidden: u64, vocabulary: u64) -> u64 {
    let tape = tape();
    let weight = parameter(hidden * vocabulary, 2);
    {
        let input = tape.require_grad(tape.outside(rows * hidden, 2));
        let logits = input.linear(weight, None, LinearKind::Linear, hidden);
        let loss = tape.plain_cross_entropy(&logits);
        drop(logits);
        tape.backward(&loss, &NoRerun);
    }
    inputs_of_head(rows, hidden, vocabulary) + peak(&tape.into_trace())
}

/// Input and weight, their gradients of the step before, and the weight of the other provider's head, which the
/// benchmark builds too.
fn inputs_of_head(rows: u64, hidden: u64, vocabulary: u64) -> u64 {
    2 * (2 * rows * hidden + 3 * hidden * vocabulary)
}

fn layer_norm(rows: u64, width: u64) -> u64 {
    let tape = tape();
    let (weight, bias) = (parameter(width, 4), parameter(width, 4));
    {
        let input = tape.require_grad(tape.outside(rows * width, 4));
        let output = input.layer_norm(weight, bias, width);
        tape.backward(&output, &NoRerun);
    }
    2 * rows * width * 4 + peak(&tape.into_trace())
}

#[test]
fn single_operators_take_what_gpus_showed() {
    let rows: Vec<Row> = include_str!("../../../../knowledge/field/operators.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut errors: Vec<f64> = Vec::new();
    for row in &rows {
        let size = |value: Option<u64>| value.unwrap();
        let predicted = match row.kernel.as_str() {
            "cross_entropy" => cross_entropy(size(row.B) * size(row.T), size(row.V)),
            "fused_linear_cross_entropy" => head(size(row.BT), size(row.H), size(row.V)),
            _ => layer_norm(size(row.M), size(row.N)),
        };
        let error = predicted as f64 / f64::from(1 << 20) / row.measured_mib - 1.0;
        println!("{} {} {:+.2} %", row.id, row.kernel, error * 100.0);
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    assert_eq!(rows.len(), 20);
    assert!(errors.last().is_some_and(|worst| *worst <= 0.005), "{errors:?}");
}

/// From a measurement on an H100 (ctx-025 of the published observations): with 16-bit logits and the loss in 32 bits,
/// 10 bytes per logit at the peak of forward, 6 after it while the output lives, 12 at the peak of backward without it.
#[test]
fn the_loss_of_transformers_takes_what_a_gpu_showed_for_each_logit() {
    let batch = Batch { sequences: 1, length: 4096, target_length: 4096 };
    let (hidden, vocabulary) = (64, 100_000);
    let tape = tape();
    let logits_bytes = (batch.tokens() * vocabulary) as f64;
    let weight = parameter(hidden * vocabulary, 2);
    {
        let input = tape.require_grad(tape.outside(batch.tokens() * hidden, 2));
        let logits = input.linear(weight, None, LinearKind::Linear, hidden);
        let loss = tape.causal_loss(&logits, Labels::Shifted(batch), None);
        tape.mark(Mark::ForwardDone);
        drop(logits);
        tape.backward(&loss, &NoRerun);
    }
    let trace = tape.into_trace();
    let done =
        trace.events.iter().position(|event| matches!(event, Event::Mark(Mark::ForwardDone)));
    let forward = Trace {
        events: trace.events[..done.unwrap()].to_vec(),
        storages: trace.storages.clone(),
        ..Trace::default()
    };
    let per_logit = |trace: &Trace| peak(trace) as f64 / logits_bytes;
    assert!((per_logit(&forward) - 10.0).abs() < 0.1, "{}", per_logit(&forward));
    assert!((per_logit(&trace) - 12.0).abs() < 0.1, "{}", per_logit(&trace));
}
