//! Exit codes of `zeropilot run`: part of its interface, listed in `docs/run.md`.

use crate::cause::Cause;

/// What `zeropilot run` exits with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitCode(pub u8);

/// What a shell adds to the number of a signal.
const SIGNAL: i32 = 128;

impl From<&Cause> for ExitCode {
    fn from(cause: &Cause) -> Self {
        Self(match cause {
            Cause::Completed => 0,
            Cause::NotStarted => 2,
            Cause::Refused => 3,
            Cause::OutOfMemory { .. } => 10,
            Cause::ProgramFailed { .. }
            | Cause::Crashed { .. }
            | Cause::CudaError { .. }
            | Cause::NoInput => 11,
            Cause::RankKilled { .. } | Cause::LauncherKilled { .. } => 12,
            Cause::CollectiveTimeout | Cause::PeerLost => 13,
            Cause::Hang { .. } => 14,
            Cause::LossScaleFloor | Cause::NotFinite | Cause::LossSpike { .. } => 15,
            Cause::ConfigRejected => 16,
            Cause::DiskFull => 17,
            Cause::CheckpointUnreadable => 18,
            Cause::Unproven | Cause::EndedEarly { .. } => 19,
            Cause::DeviceFailed { .. } => 20,
            Cause::NoRendezvous => 21,
            Cause::SharedMemoryFull => 22,
            Cause::DriverTooOld => 23,
            Cause::HubUnavailable => 24,
            Cause::Interrupted { signal } => u8::try_from(SIGNAL + signal).unwrap_or(u8::MAX),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_exits_as_shells_expect() {
        assert_eq!(ExitCode::from(&Cause::Interrupted { signal: 2 }), ExitCode(130));
        assert_eq!(ExitCode::from(&Cause::Interrupted { signal: 15 }), ExitCode(143));
    }

    #[test]
    fn only_completion_is_zero() {
        let early = Cause::EndedEarly { step: 7, total: 15 };
        for cause in [Cause::Unproven, Cause::NotFinite, Cause::Refused, Cause::DiskFull, early] {
            assert_ne!(ExitCode::from(&cause), ExitCode(0), "{cause:?}");
        }
    }
}
