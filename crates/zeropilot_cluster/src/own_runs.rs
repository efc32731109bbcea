//! What the user's own runs on a device needed, over what was predicted for them.

/// A run on the device that is asked about. Runs of the same job are one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OwnRun {
    /// Whether its weights were in four bits.
    pub is_four_bit: bool,
    /// Measured over predicted memory.
    pub memory: Option<f64>,
    /// Measured over predicted time of a step.
    pub step: Option<f64>,
}
