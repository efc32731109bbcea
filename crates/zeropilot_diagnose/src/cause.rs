//! The causes and phases, with the names they have in data and answers.

use serde::{Deserialize, Serialize};

/// Why memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomCause"))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Weights, gradients and optimizer states do not fit.
    ModelStates,
    /// Activations of the forward pass, or what backward computes from them.
    Activations,
    /// The logits and the loss over them.
    Logits,
    /// PyTorch holds enough memory, in pieces that are too small.
    Fragmentation,
    /// Another process holds memory of the same GPU.
    OtherProcess,
    /// Evaluation needs more than training does.
    Evaluation,
    /// Saving gathers or copies weights.
    Saving,
    /// Generation, or the share of the GPU that an inference engine holds.
    Generation,
    /// One tensor is larger than anything that could be free.
    LargeRequest,
    /// The machine's memory, not the GPU's.
    HostMemory,
    /// No room is left for NCCL, cuBLAS or the CUDA context.
    LibraryMemory,
    /// The log does not show it.
    Unknown,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::ModelStates,
        Self::Activations,
        Self::Logits,
        Self::Fragmentation,
        Self::OtherProcess,
        Self::Evaluation,
        Self::Saving,
        Self::Generation,
        Self::LargeRequest,
        Self::HostMemory,
        Self::LibraryMemory,
        Self::Unknown,
    ];
}

/// How sure a cause is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomCertainty"))]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// The log shows it.
    Shown,
    /// It is the usual cause of what the log shows.
    Likely,
    /// Nothing shows it.
    Unknown,
}

/// What the program was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomPhase"))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The forward pass.
    Forward,
    /// The backward pass, which may run forward again.
    Backward,
    /// The optimizer step.
    Step,
    /// Reading the model.
    Loading,
    /// Building the engine around the model, which may read, move and step.
    Initialize,
    /// Evaluation, which runs forward.
    Evaluation,
    /// Generation and what feeds it with weights.
    Generation,
    /// Writing a checkpoint.
    Saving,
}
