//! What the kernels of a rank wait for.

/// A reason to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Weights that are gathered before a module runs (stage 3).
    Gather,
    /// Gradients that are reduced.
    Reduction,
    /// Parts of a sequence that ranks exchange around attention.
    Exchange,
    /// Updated weights that are gathered after the step.
    Weights,
    /// Norms and overflow flags.
    SmallCalls,
    /// Copies from the host.
    ToDevice,
    /// Copies to the host.
    ToHost,
    /// The optimizer on the host.
    HostUpdate,
    /// Disks.
    Disk,
    /// The host, which starts kernels and runs hooks.
    Host,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Gather,
        Self::Reduction,
        Self::Exchange,
        Self::Weights,
        Self::SmallCalls,
        Self::ToDevice,
        Self::ToHost,
        Self::HostUpdate,
        Self::Disk,
        Self::Host,
    ];

    /// Its name for machines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Gather => "gather",
            Self::Reduction => "reduction",
            Self::Exchange => "exchange",
            Self::Weights => "weights",
            Self::SmallCalls => "small_calls",
            Self::ToDevice => "to_device",
            Self::ToHost => "to_host",
            Self::HostUpdate => "host_update",
            Self::Disk => "disk",
            Self::Host => "host",
        }
    }
}
