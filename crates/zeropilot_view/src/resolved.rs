//! What a config became, for programs. The shape is a contract: keys are added, never changed.

use serde_json::{Value, json};
use zeropilot_config::python::PyValue;
use zeropilot_lint::Report;

use crate::memory::precision_name;

/// The values the engine holds after loading the config; `None` if it is refused.
pub fn resolved(report: &Report) -> Option<Value> {
    let values = report.resolved.as_ref()?;
    let table = values.keys.table();
    let number = |value: &Option<PyValue>| value.as_ref().map(|value| json!(value));
    Some(json!({
        "shape": 1,
        "deepspeed_version": report.version.name(),
        "front_end": report.front_end.name(),
        "world_size": report.world.size,
        "world_size_source": report.world.source.name(),
        "stage": values.stage,
        "precision": precision_name(values.keys.config().precision()),
        "train_batch_size": number(&values.train_batch_size),
        "train_micro_batch_size_per_gpu": number(&values.micro_batch_size),
        "gradient_accumulation_steps": number(&values.gradient_accumulation_steps),
        "gradient_clipping": table.get("gradient_clipping"),
        "zero_optimization": values.zero_optimization,
        "pending": report.pending.iter().map(|pending| json!({
            "path": pending.path,
            "filled_from": pending.argument,
        })).collect::<Vec<_>>(),
    }))
}
