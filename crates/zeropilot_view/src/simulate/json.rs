//! The report for machines; seconds and bytes throughout.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use zeropilot_step::time::{Cause, ScalingPoint, Stream};
use zeropilot_step::traffic::Traffic;

use super::SimulateReport;
use crate::estimate::Range;
use crate::json::value;
use crate::memory::Fit;
use crate::memory::json::{OwnBounds, engine_name};
use crate::provenance;

/// The version of this shape.
const SHAPE: u32 = 1;

/// Time of a step, its waits and its communication volume.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Simulation<'a> {
    shape: u32,
    model: &'a str,
    engine: &'static str,
    stage: u8,
    micro_batch: u64,
    gradient_accumulation_steps: u64,
    sequence_length: u64,
    gradient_checkpointing: bool,
    world_size: u64,
    nodes: u64,
    gpus_per_node: u64,
    network: Option<NodeNetwork>,
    step: StepSeconds,
    verdict: Option<Fit>,
    process_bytes: Option<u64>,
    tokens_per_s: f64,
    tokens_per_s_per_gpu: f64,
    tflops_per_gpu: f64,
    mfu: f64,
    hfu: f64,
    busy: BTreeMap<&'static str, f64>,
    waits: BTreeMap<&'static str, f64>,
    communication: Communication,
    cost_estimate: Option<CostRange>,
    scaling: Vec<Scaling>,
    provenance: provenance::Shape<'a>,
}

/// The network between the nodes; `stated` if it was given, not assumed.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct NodeNetwork {
    name: String,
    gb_s: f64,
    stated: bool,
}

/// Seconds of a step with their bounds, and the expected seconds of each phase.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct StepSeconds {
    low: f64,
    expected: f64,
    high: f64,
    forward: f64,
    backward: f64,
    optimizer: f64,
    own_runs: Option<OwnBounds>,
}

/// Communication volume of a step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Communication {
    calls: Vec<CallTotal>,
    sent: u64,
    to_device: u64,
    to_host: u64,
}

/// Calls of one kind among this many ranks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CallTotal {
    kind: &'static str,
    ranks: u64,
    calls: u64,
    bytes: u64,
}

/// Cost of the whole training, with bounds: GPU hours, and money if a price was given.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostRange {
    tokens: f64,
    gpu_hours: Range,
    cost: Option<Range>,
}

/// The same job on another number of GPUs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Scaling {
    gpus: u64,
    gradient_accumulation_steps: u64,
    step: f64,
    tokens_per_s: f64,
    tokens_per_s_per_gpu: f64,
    mfu: f64,
    efficiency: Option<f64>,
}

/// The report as JSON.
pub fn json(report: &SimulateReport<'_>) -> Value {
    let (question, program, time) = (&report.question, report.program, report.time);
    let layout = question.cluster.gpus.layout;
    let expected = &time.expected;
    let rate = report.tokens() / expected.total;
    value(&Simulation {
        shape: SHAPE,
        model: report.name,
        engine: engine_name(question.recipe.engine),
        stage: question.zero.stage as u8,
        micro_batch: question.micro_batch,
        gradient_accumulation_steps: program.accumulation,
        sequence_length: question.recipe.sequence,
        gradient_checkpointing: question.recipe.checkpointing,
        world_size: program.ranks,
        nodes: layout.nodes,
        gpus_per_node: layout.gpus_per_node,
        network: report.network.map(|network| NodeNetwork {
            name: network.to_string(),
            gb_s: network.gb_s(),
            stated: network.stated,
        }),
        step: StepSeconds {
            low: time.best.total,
            expected: expected.total,
            high: time.worst.total,
            forward: expected.forward,
            backward: expected.backward,
            optimizer: expected.step,
            own_runs: time.own.map(OwnBounds::from),
        },
        verdict: report.fit,
        process_bytes: report.process.map(|process| process.0),
        tokens_per_s: rate,
        tokens_per_s_per_gpu: rate / program.ranks as f64,
        tflops_per_gpu: expected.model_rate() / 1e12,
        mfu: expected.mfu,
        hfu: expected.hfu,
        busy: Stream::ALL.map(|stream| (stream.name(), expected.busy(stream))).into(),
        waits: Cause::ALL.map(|cause| (cause.name(), expected.waits(cause))).into(),
        communication: communication(report.traffic),
        cost_estimate: report.bill.as_ref().map(|bill| {
            let gpu_hours = Range::from(report.gpu_hours(bill));
            let cost = bill.per_gpu_hour.map(|price| gpu_hours.times(price));
            CostRange { tokens: bill.tokens, gpu_hours, cost }
        }),
        scaling: report.scaling.iter().map(|point| scaling(point, report)).collect(),
        provenance: report.provenance.into(),
    })
}

/// What goes over the links, for machines.
pub fn communication(traffic: &Traffic) -> Communication {
    let calls = traffic.calls.iter().map(|((kind, ranks), total)| CallTotal {
        kind: kind.name(),
        ranks: *ranks,
        calls: total.calls,
        bytes: total.bytes,
    });
    Communication {
        calls: calls.collect(),
        sent: traffic.sent,
        to_device: traffic.to_device,
        to_host: traffic.to_host,
    }
}

fn scaling(point: &ScalingPoint, report: &SimulateReport<'_>) -> Scaling {
    let tokens = point.sequences_per_s * report.question.recipe.sequence as f64;
    Scaling {
        gpus: point.gpus,
        gradient_accumulation_steps: point.accumulation,
        step: point.time.total,
        tokens_per_s: tokens,
        tokens_per_s_per_gpu: tokens / point.gpus as f64,
        mfu: point.time.mfu,
        efficiency: report.scaling.first().map(|first| point.efficiency(first)),
    }
}
