//! The report for machines. `tensors` is exact, `device` and `host` are estimates.

use serde_json::{Map, Value, json};
use zeropilot_step::lower::Fidelity;
use zeropilot_step::memory::{Answer, Phase, Prediction, Stretch};
use zeropilot_step::zero::{Place, Rest};
use zeropilot_text::Language;
use zeropilot_units::{Bytes, Estimate};

use super::MemoryReport;
use super::human::precision;
use super::part::{Part, parts};
use super::relief::{name, stage_number};
use super::svg::phase;
use super::verdict::fit;
use crate::provenance;

/// The version of this shape.
const SHAPE: u32 = 1;

/// The report as JSON, with the tensors of its rank as CPU ranks were measured to hold them.
pub fn json(report: &MemoryReport<'_>, as_measured: &Prediction) -> Value {
    let (question, answer) = (&report.question, report.answer);
    let capacity = question.cluster.capacity().map(|capacity| capacity.bytes);
    let ram = question.cluster.host.ram.map(Estimate::exact);
    let layout = question.cluster.gpus.layout;
    json!({
        "shape": SHAPE,
        "model": report.name,
        "stage": stage_number(question.zero.stage),
        "micro_batch": question.micro_batch,
        "sequence_length": question.recipe.sequence,
        "precision": precision(question.resolved.precision()),
        "precision_assumed": report.assumed.is_some(),
        "gradient_checkpointing": question.recipe.checkpointing,
        "world_size": question.cluster.world_size(),
        "nodes": layout.nodes,
        "gpus_per_node": layout.gpus_per_node,
        "rank": answer.rank,
        "activations": match answer.fidelity {
            Fidelity::Own => json!({"program": "own"}),
            Fidelity::StandIn(family) => json!({"program": "stand_in", "of": family.name()}),
        },
        "tensors": tensors(as_measured),
        "device": device(report, capacity),
        "host": {
            "per_process": estimate(answer.host()),
            "low": answer.node().low().0,
            "expected": answer.node().expected().0,
            "high": answer.node().high().0,
            "processes": answer.ranks_per_host,
            "capacity": ram.map(|ram| ram.expected().0),
            "verdict": ram.map(|ram| fit(answer.node(), ram).name()),
            "disk": answer.disk.total().0 * answer.ranks_per_host,
        },
        "reliefs": report.reliefs.iter().map(|relief| json!({
            "change": name(relief.lever),
            "saved": relief.saved.0,
        })).collect::<Vec<_>>(),
        "provenance": provenance::json(report.provenance),
    })
}

fn device(report: &MemoryReport<'_>, capacity: Option<Estimate>) -> Value {
    let answer = report.answer;
    let need = answer.device();
    let mut terms: Vec<Value> = answer
        .terms
        .iter()
        .map(|term| json!({"term": term.kind.name(), "bytes": estimate(term.bytes)}))
        .collect();
    terms.push(json!({"term": "allocator_slack", "bytes": estimate(answer.slack)}));
    json!({
        "low": need.low().0,
        "expected": need.expected().0,
        "high": need.high().0,
        "capacity": capacity.map(|capacity| capacity.expected().0),
        "verdict": capacity.map(|capacity| fit(need, capacity).name()),
        "at_peak": at_peak(answer),
        "terms": terms,
        "peak": {
            "phase": phase_name(answer.fullest),
            "near": answer.nearest,
            "init": answer.on_gpu.peak(Phase::Init).at(Place::Device).0,
            "forward": answer.on_gpu.peak(Phase::Forward).at(Place::Device).0,
            "backward": answer.on_gpu.peak(Phase::Backward).at(Place::Device).0,
            "step": answer.on_gpu.peak(Phase::Step).at(Place::Device).0,
        },
    })
}

/// The tensors on the GPU at its fullest, by part.
pub(super) fn at_peak(answer: &Answer) -> Map<String, Value> {
    parts(answer.at_peak(), &[Place::Device])
        .into_iter()
        .map(|(part, bytes)| (part.name().to_owned(), Value::from(bytes.0)))
        .collect()
}

/// What is said of the GPU and the host in one row, as [`compare_words`](super::compare_words) says it of every way.
pub fn row_words(report: &MemoryReport<'_>, language: Language) -> Value {
    let need = report.answer.device();
    let capacity = report.question.cluster.capacity();
    json!({
        "need": need.to_string(),
        "verdict": capacity.map(|capacity| fit(need, capacity.bytes).words(language)),
        "host": report.answer.node().expected().to_string(),
    })
}

/// What a GPU holds between the phases by part, with the words beside it, for pages that lay them out themselves.
pub fn rest_words(as_measured: &Prediction, language: Language) -> Value {
    let states = &as_measured.states;
    let row = |(part, bytes): (Part, Bytes)| json!({"name": part.name(), "words": part.words(language), "bytes": bytes.0});
    let rows = |rest: &Rest| -> Vec<Value> {
        parts(rest, &[Place::Device]).into_iter().map(row).collect()
    };
    json!({
        "after_init": rows(&states.after_init),
        "after_backward": rows(&states.after_backward),
        "after_step": rows(&states.after_step),
    })
}

/// What a GPU holds through a step, stretch by stretch, each with the words of its phase.
pub fn film(stretches: &[Stretch], language: Language) -> Value {
    let frames = stretches.iter().map(|stretch| {
        let held = parts(&stretch.alive, &[Place::Device]).into_iter();
        let held = held.map(|(part, bytes)| (part.name().to_owned(), json!(bytes.0)));
        json!({"phase": phase(stretch.phase).get(language), "held": Map::from_iter(held)})
    });
    Value::Array(frames.collect())
}

fn tensors(prediction: &Prediction) -> Value {
    let misc = prediction.buffers + prediction.batch;
    let states = &prediction.states;
    let last = prediction.micro_steps.last();
    let total = |phase: Phase| {
        // The last micro step is the one whose end is a state of rest.
        let peak = match (phase, last) {
            (Phase::Forward, Some(last)) => &last.forward,
            (Phase::Backward, Some(last)) => &last.backward,
            _ => prediction.peak(phase),
        };
        peak.total.0
    };
    json!({
        "after_init": state(&states.after_init, prediction.buffers),
        "after_backward": state(&states.after_backward, misc),
        "after_step": state(&states.after_step, misc),
        "peak": {
            "init": total(Phase::Init),
            "forward": total(Phase::Forward),
            "backward": total(Phase::Backward),
            "step": total(Phase::Step),
        },
    })
}

fn state(rest: &Rest, misc: Bytes) -> Value {
    let mut state = Map::new();
    for place in Place::ALL {
        let mut categories = Map::new();
        for (category, at, bytes) in rest.iter() {
            if at == place {
                categories.insert(category.name().to_owned(), Value::from(bytes.0));
            }
        }
        state.insert(place.name().to_owned(), Value::Object(categories));
    }
    state.insert("total".to_owned(), Value::from(rest.total().0));
    state.insert("misc".to_owned(), Value::from(misc.0));
    Value::Object(state)
}

fn estimate(bytes: Estimate) -> Value {
    json!({"low": bytes.low().0, "expected": bytes.expected().0, "high": bytes.high().0})
}

pub(super) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Init => "init",
        Phase::Forward => "forward",
        Phase::Backward => "backward",
        Phase::Step => "step",
    }
}
