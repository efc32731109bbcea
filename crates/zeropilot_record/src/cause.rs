//! Why a run ended.

use serde::{Deserialize, Serialize};

/// How the command that was started ended, as the system tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an exit status of its own.
    Exited(i32),
    /// By a signal.
    Signaled(i32),
    /// Nobody saw how.
    Unknown,
}

impl Ending {
    /// Whether it says that all went well, which alone proves nothing.
    pub fn is_success(self) -> bool {
        self == Self::Exited(0)
    }

    /// The signal that ended it. A shell whose command was ended by one exits with 128 and the number of the signal.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signaled(signal) => Some(signal),
            Self::Exited(code) => Some(code - 128).filter(|signal| (1..32).contains(signal)),
            Self::Unknown => None,
        }
    }
}

/// Which memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// That of a GPU.
    Device,
    /// That of the machine, which is also where ranks on CPUs keep their tensors.
    Host,
}

/// How it showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// An allocation was refused and the program said so.
    Refused,
    /// The kernel killed a process.
    Killed,
}

/// What the program was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Building the model, or the engine around it.
    Loading,
    /// The forward pass.
    Forward,
    /// The backward pass.
    Backward,
    /// The optimizer step.
    Step,
    /// Writing a checkpoint.
    Saving,
}

/// Why a run, or one attempt of it, ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Cause {
    /// It did what it was started for.
    Completed,
    /// Memory ran out.
    OutOfMemory {
        /// Which one.
        memory: Memory,
        /// How it showed.
        shortage: Shortage,
        /// When, if the log tells.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        phase: Option<Phase>,
    },
    /// A rank was killed by a signal that nobody here sent.
    RankKilled {
        /// Which rank, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
        /// The signal.
        signal: i32,
    },
    /// A rank crashed: a signal that its own code brought about.
    Crashed {
        /// Which rank, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
        /// The signal.
        signal: i32,
    },
    /// A GPU, or a link between GPUs, is broken.
    DeviceFailed {
        /// The rank that met it, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
    },
    /// `/dev/shm` is too small for what data workers or NCCL share.
    SharedMemoryFull,
    /// The driver is older than the CUDA that PyTorch was built for.
    DriverTooOld,
    /// A kernel failed on a GPU, or a call of CUDA did.
    CudaError {
        /// The rank that met it, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
    },
    /// The model hub rejected requests or failed.
    HubUnavailable,
    /// The ranks could not meet: the port is taken, or the host is not known.
    NoRendezvous,
    /// The launcher, or a process between it and the ranks, was killed.
    LauncherKilled {
        /// The signal, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        signal: Option<i32>,
    },
    /// The training program asked for input, and there is none.
    NoInput,
    /// The training program failed by itself.
    ProgramFailed {
        /// The first rank that did, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        rank: Option<u32>,
    },
    /// Ranks waited for each other longer than the process group allows.
    CollectiveTimeout,
    /// A rank on another machine went away, and those here failed for that alone.
    PeerLost,
    /// Nothing moved for too long.
    Hang {
        /// Ranks that stand still by themselves, rather than waiting for others.
        ranks: Vec<u32>,
    },
    /// fp16 found no loss scale small enough.
    LossScaleFloor,
    /// The loss is not a number.
    NotFinite,
    /// The loss jumped and did not come back.
    LossSpike {
        /// The first step with a high loss.
        since: u64,
    },
    /// The engine or a front end refused the config.
    ConfigRejected,
    /// A disk is full.
    DiskFull,
    /// A checkpoint could not be read.
    CheckpointUnreadable,
    /// A signal asked zeropilot to stop.
    Interrupted {
        /// The signal.
        signal: i32,
    },
    /// The launcher says all went well, but nothing shows that training ended.
    Unproven,
    /// The command ended without an error before the last step that was asked for.
    EndedEarly {
        /// The last step.
        step: u64,
        /// The steps that were asked for.
        total: u64,
    },
    /// The command could not be started.
    NotStarted,
    /// The check before the start found what cannot work.
    Refused,
}

impl Cause {
    /// Whether more of the same may end better: what happened came from outside.
    pub fn restart_may_help(&self) -> bool {
        matches!(
            self,
            Self::RankKilled { .. }
                | Self::LauncherKilled { .. }
                | Self::CollectiveTimeout
                | Self::PeerLost
                | Self::Crashed { .. }
                | Self::DeviceFailed { .. }
                | Self::CudaError { .. }
                | Self::HubUnavailable
                | Self::NoRendezvous
                | Self::Hang { .. }
                | Self::LossSpike { .. }
                | Self::Unproven
        )
    }

    /// Its name in events and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::OutOfMemory { .. } => "out_of_memory",
            Self::RankKilled { .. } => "rank_killed",
            Self::Crashed { .. } => "crashed",
            Self::DeviceFailed { .. } => "device_failed",
            Self::SharedMemoryFull => "shared_memory_full",
            Self::DriverTooOld => "driver_too_old",
            Self::CudaError { .. } => "cuda_error",
            Self::HubUnavailable => "hub_unavailable",
            Self::NoRendezvous => "no_rendezvous",
            Self::LauncherKilled { .. } => "launcher_killed",
            Self::NoInput => "no_input",
            Self::ProgramFailed { .. } => "program_failed",
            Self::CollectiveTimeout => "collective_timeout",
            Self::PeerLost => "peer_lost",
            Self::Hang { .. } => "hang",
            Self::LossScaleFloor => "loss_scale_floor",
            Self::NotFinite => "not_finite",
            Self::LossSpike { .. } => "loss_spike",
            Self::ConfigRejected => "config_rejected",
            Self::DiskFull => "disk_full",
            Self::CheckpointUnreadable => "checkpoint_unreadable",
            Self::Interrupted { .. } => "interrupted",
            Self::Unproven => "unproven",
            Self::EndedEarly { .. } => "ended_early",
            Self::NotStarted => "not_started",
            Self::Refused => "refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_written_under_its_name() {
        let cause = Cause::RankKilled { rank: Some(1), signal: 9 };
        let json = serde_json::to_value(&cause).expect("JSON");
        assert_eq!(json["cause"], cause.name());
        assert_eq!(serde_json::from_value::<Cause>(json).expect("a cause"), cause);
    }
}
