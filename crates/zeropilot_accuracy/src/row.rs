//! Rows of `knowledge/field/measurements.jsonl`.

use std::sync::LazyLock;

use serde::Deserialize;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ran.
    Ok,
    /// It ran out of memory.
    Oom,
    /// It ran, and only that is known.
    #[serde(alias = "fits (maximum reported)")]
    Fits,
}

/// Whether layers are recomputed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Checkpointing {
    /// All of them, or none.
    All(bool),
    /// Some, as the text says.
    Some(String),
}

/// A published data point; the fields are described in `knowledge/field/README.md`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[allow(missing_docs, reason = "described beside the data")]
pub struct Row {
    pub id: String,
    pub source: String,
    pub model: String,
    pub gpu: Option<String>,
    pub gpus: Option<u64>,
    pub nodes: Option<u64>,
    pub interconnect: Option<String>,
    pub framework: Option<String>,
    /// When it was measured or printed, beginning with the year.
    pub date: Option<String>,
    pub zero_stage: Option<u8>,
    pub offload_optimizer: Option<String>,
    pub offload_param: Option<String>,
    pub precision: Option<String>,
    pub optimizer: Option<String>,
    pub method: Option<String>,
    /// What the model is trained for, if not to predict the next token.
    pub task: Option<String>,
    pub teacher: Option<String>,
    /// What generates completions.
    pub rollout: Option<String>,
    /// Parts of the model that a full fine-tuning leaves alone.
    pub frozen: Option<String>,
    /// What is known of the images, where samples have some.
    pub images: Option<String>,
    pub lora_rank: Option<u64>,
    pub lora_targets: Option<String>,
    pub micro_batch: Option<u64>,
    pub grad_accum: Option<u64>,
    pub seq_len: Option<u64>,
    pub seq_mode: Option<String>,
    /// What the samples are from, where statistics of their lengths are published.
    pub dataset: Option<String>,
    pub grad_ckpt: Option<Checkpointing>,
    pub flash_attn: Option<bool>,
    pub parallelism: Option<String>,
    pub peak_mem_gb: Option<f64>,
    pub mem_unit: Option<String>,
    pub mem_metric: Option<String>,
    pub tokens_per_s_per_gpu: Option<f64>,
    pub outcome: Outcome,
    pub complete_memory: bool,
    pub complete_throughput: bool,
    pub notes: Option<String>,
}

impl Row {
    /// The source's short name.
    pub fn prefix(&self) -> &str {
        self.id.split_once('-').map_or(self.id.as_str(), |(prefix, _)| prefix)
    }
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("../../../knowledge/field/measurements.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a test reads every line")).collect()
});

/// All of them.
pub fn rows() -> &'static [Row] {
    &ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As counted in `knowledge/field/README.md`.
    #[test]
    fn all_rows_are_read() {
        let count = |holds: fn(&&Row) -> bool| rows().iter().filter(holds).count();
        assert_eq!(rows().len(), 912);
        assert_eq!(count(|row| row.complete_memory), 319);
        assert_eq!(count(|row| row.complete_throughput), 446);
        assert_eq!(count(|row| row.outcome == Outcome::Oom), 20);
    }
}
