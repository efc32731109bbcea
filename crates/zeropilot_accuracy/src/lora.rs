//! What a row trains, as the model crate says it.

use zeropilot_model::lora::{Lora, Targets};
use zeropilot_model::quantization::{BaseFormat, GROUP, QuantizedBase, ScaleStorage};
use zeropilot_step::lower::Method;

use crate::question::{Difference, Obstacle};
use crate::reading::{Modules, READING, Word};
use crate::row::Row;

pub(crate) fn method(row: &Row, differences: &mut Vec<Difference>) -> Result<Method, Obstacle> {
    match row.method.as_deref() {
        Some("full" | "pretrain") => Ok(Method::Full),
        Some("lora") => adapters(row).map(Method::Lora),
        Some("qlora") => {
            let base = Some(base(row, differences));
            Ok(Method::QLora { lora: adapters(row)?, base })
        }
        Some(_) => Err(Obstacle::Method),
        None => Err(Obstacle::Missing("method")),
    }
}

fn adapters(row: &Row) -> Result<Lora, Obstacle> {
    let mut lora = Lora::new(row.lora_rank.ok_or(Obstacle::Missing("lora_rank"))?);
    let targets = row.lora_targets.as_ref().ok_or(Obstacle::Missing("lora_targets"))?;
    let reading = READING.lora_targets.get(targets).ok_or(Obstacle::LoraTargets)?;
    lora.targets = match &reading.targets {
        Modules::Word(Word::AllLinear) => Targets::AllLinear,
        Modules::Names(names) => Targets::Names(names.clone()),
    };
    lora.modules_to_save.clone_from(&reading.saved);
    Ok(lora)
}

/// How the base is quantized.
fn base(row: &Row, differences: &mut Vec<Difference>) -> QuantizedBase {
    let precision = row.precision.as_deref().unwrap_or("").to_lowercase();
    let has = |word: &str| precision.contains(word);
    if has("gptq") {
        differences.push(Difference::GptqGroupAssumed);
        BaseFormat::Gptq { bits: if has("int8") { 8 } else { 4 }, group: Some(GROUP) }
    } else if has("double") || has("-dq") {
        BaseFormat::FourBit(ScaleStorage::DoubleQuantized)
    } else {
        BaseFormat::FourBit(ScaleStorage::Plain)
    }
    .into()
}
