//! A: `"auto"`, which the HF Trainer and accelerate replace and DeepSpeed does not know.

pub(crate) mod dropped;
pub(crate) mod genuine;
pub(crate) mod hidden_size;
pub(crate) mod kept_as_text;
pub(crate) mod leftover;
pub(crate) mod mismatch;
pub(crate) mod missing_is_not_auto;
pub(crate) mod misspelt;
pub(crate) mod optimizer_params;
pub(crate) mod top_level;
pub(crate) mod unfilled_by_accelerate;
pub(crate) mod warmup_zero;

/// Whether the engine itself gives `"auto"` a meaning at this path.
pub(crate) fn is_genuine(path: &[&str]) -> bool {
    matches!(path, ["data_types", "keep_in_fp32_modules"] | ["pipeline", "stages"])
}
