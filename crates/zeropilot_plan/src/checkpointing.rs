//! Two sections whose keys are written as they are asked for.

/// DeepSpeed's own activation checkpointing, for models that call `deepspeed.checkpointing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ActivationCheckpointing {
    /// Splits the kept activations over the model-parallel ranks.
    pub partition_activations: bool,
    /// Keeps them in host memory.
    pub cpu_checkpointing: bool,
    /// Copies them into one buffer, which needs the number of checkpoints.
    pub number_checkpoints: Option<u64>,
    /// Waits for the device at each boundary.
    pub synchronize_checkpoint_boundary: bool,
    /// Measures the time of each.
    pub profile: bool,
}

/// How the disk is read and written. What is not said is the engine's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AsyncIo {
    /// Bytes of one request.
    pub block_size: Option<u64>,
    /// Requests in flight.
    pub queue_depth: Option<u64>,
    /// Threads of one transfer.
    pub intra_op_parallelism: Option<u64>,
    /// Hands requests over one by one.
    pub single_submit: Option<bool>,
    /// Overlaps handing over with waiting.
    pub overlap_events: Option<bool>,
}
