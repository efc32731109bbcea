//! What a config became, for programs. The shape is a contract: keys are added, never changed.

use serde::Serialize;
use serde_json::Value;
use zeropilot_config::python::PyValue;
use zeropilot_lint::Report;

use crate::json::{Pending, value};
use crate::memory::precision_name;

/// A config after DeepSpeed has loaded it, without values that only the script sets.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Resolved<'a> {
    shape: u32,
    deepspeed_version: &'static str,
    front_end: &'static str,
    world_size: usize,
    world_size_source: &'static str,
    stage: u8,
    precision: &'static str,
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    train_batch_size: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    train_micro_batch_size_per_gpu: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    gradient_accumulation_steps: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "Option<f64>"))]
    gradient_clipping: Option<&'a PyValue>,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, Value>"))]
    zero_optimization: &'a PyValue,
    pending: Vec<Pending<'a>>,
}

/// The values DeepSpeed holds after loading the config; `None` if it is rejected.
pub fn resolved(report: &Report) -> Option<Value> {
    let values = report.resolved.as_ref()?;
    let pending = report.pending.iter();
    Some(value(&Resolved {
        shape: 1,
        deepspeed_version: report.version.name(),
        front_end: report.front_end.name(),
        world_size: report.world.size,
        world_size_source: report.world.source.name(),
        stage: values.stage,
        precision: precision_name(values.keys.config().precision()),
        train_batch_size: values.train_batch_size.as_ref(),
        train_micro_batch_size_per_gpu: values.micro_batch_size.as_ref(),
        gradient_accumulation_steps: values.gradient_accumulation_steps.as_ref(),
        gradient_clipping: values.keys.table().get("gradient_clipping"),
        zero_optimization: &values.zero_optimization,
        pending: pending
            .map(|pending| Pending { path: &pending.path, filled_from: pending.argument })
            .collect(),
    }))
}
