//! The report for machines; seconds and bytes throughout.

use serde_json::{Map, Value, json};
use zeropilot_step::time::{Cause, ScalingPoint, StepTime, Stream};
use zeropilot_step::traffic::Traffic;

use super::SimulateReport;
use crate::memory::Fit;
use crate::provenance;

/// The version of this shape.
const SHAPE: u32 = 1;

/// The report as JSON.
pub fn json(report: &SimulateReport<'_>) -> Value {
    let (question, program, time) = (&report.question, report.program, report.time);
    let layout = question.cluster.gpus.layout;
    let expected = &time.expected;
    let rate = report.tokens() / expected.total;
    json!({
        "shape": SHAPE,
        "model": report.name,
        "stage": question.zero.stage as u8,
        "micro_batch": question.micro_batch,
        "gradient_accumulation_steps": program.accumulation,
        "sequence_length": question.recipe.sequence,
        "gradient_checkpointing": question.recipe.checkpointing,
        "world_size": program.ranks,
        "nodes": layout.nodes,
        "gpus_per_node": layout.gpus_per_node,
        "network": report.network.map(|network| json!({
            "name": network.to_string(), "gb_s": network.gb_s(), "stated": network.stated,
        })),
        "step": {
            "low": time.best.total, "expected": expected.total, "high": time.worst.total,
            "forward": expected.forward, "backward": expected.backward, "optimizer": expected.step,
        },
        "fit": report.fit.map(Fit::name),
        "tokens_per_s": rate,
        "tokens_per_s_per_gpu": rate / program.ranks as f64,
        "tflops_per_gpu": expected.model_rate() / 1e12,
        "mfu": expected.mfu,
        "hfu": expected.hfu,
        "busy": busy(expected),
        "waits": waits(expected),
        "traffic": traffic(report.traffic),
        "bill": report.bill.as_ref().map(|bill| {
            let [low, middle, high] = report.gpu_hours(bill);
            json!({
                "tokens": bill.tokens,
                "gpu_hours": { "low": low, "expected": middle, "high": high },
                "cost": bill.per_gpu_hour.map(|price| json!({
                    "low": low * price, "expected": middle * price, "high": high * price,
                })),
            })
        }),
        "scaling": report.scaling.iter().map(|point| scaling(point, report)).collect::<Vec<_>>(),
        "provenance": provenance::json(report.provenance),
    })
}

fn busy(time: &StepTime) -> Value {
    let entries = Stream::ALL.map(|stream| (stream.name().to_owned(), json!(time.busy(stream))));
    Value::Object(Map::from_iter(entries))
}

fn waits(time: &StepTime) -> Value {
    let entries = Cause::ALL.map(|cause| (cause.name().to_owned(), json!(time.waits(cause))));
    Value::Object(Map::from_iter(entries))
}

/// What goes over the links, for machines.
pub fn traffic(traffic: &Traffic) -> Value {
    let calls: Vec<Value> = traffic
        .calls
        .iter()
        .map(|((kind, ranks), total)| {
            json!({"kind": kind.name(), "ranks": ranks, "calls": total.calls, "bytes": total.bytes})
        })
        .collect();
    json!({
        "calls": calls,
        "sent": traffic.sent,
        "to_device": traffic.to_device,
        "to_host": traffic.to_host,
    })
}

fn scaling(point: &ScalingPoint, report: &SimulateReport<'_>) -> Value {
    let tokens = point.sequences_per_s * report.question.recipe.sequence as f64;
    json!({
        "gpus": point.gpus,
        "gradient_accumulation_steps": point.accumulation,
        "step": point.time.total,
        "tokens_per_s": tokens,
        "tokens_per_s_per_gpu": tokens / point.gpus as f64,
        "mfu": point.time.mfu,
        "efficiency": report.scaling.first().map(|first| point.efficiency(first)),
    })
}
