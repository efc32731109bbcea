//! Ranks that share a sequence (Ulysses) or a model (tensor parallelism), and what computes long sequences in tiles.

#[cfg(feature = "job")]
pub(crate) mod adapters_in_tiles;
#[cfg(feature = "job")]
pub(crate) mod launcher_options;
#[cfg(feature = "job")]
pub(crate) mod optimizer_of_bf16;
#[cfg(feature = "job")]
pub(crate) mod packed_documents;
#[cfg(feature = "job")]
pub(crate) mod positions_dropped;
#[cfg(feature = "job")]
pub(crate) mod refused;
pub(crate) mod sequence_key_alone;
pub(crate) mod tensor_parallel_batch;
#[cfg(feature = "job")]
pub(crate) mod tensor_parallel_data;

/// A config for the bare engine on two ranks that share a sequence.
#[cfg(feature = "job")]
const STAGE_3: &str = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}, "zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": true}}"#;

/// The same, with a tensor that two ranks hold together.
#[cfg(feature = "job")]
const TENSOR_PARALLEL: &str = r#"{"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 0}, "tensor_parallel": {"autotp_size": 2}}"#;

/// How many ranks hold a weight together, where the config settles that several do.
#[cfg(feature = "job")]
fn tensor_parallel(report: Option<&crate::report::Report>) -> Option<usize> {
    use num_traits::ToPrimitive as _;
    use zeropilot_config::python::PyValue;
    let table = report?.values()?.keys.table();
    match table.get("tensor_parallel.autotp_size")? {
        PyValue::Int(size) => size.to_usize().filter(|size| *size > 1),
        _ => None,
    }
}
