//! What the program's exit code says.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitStatus {
    /// Nothing is wrong.
    Clean,
    /// Something must be put right: errors or warnings were found.
    Findings,
    /// The command could not do its work: a wrong argument, an input that cannot be read.
    Failure,
    /// What became of a run; `docs/run.md` lists the codes.
    #[cfg(target_os = "linux")]
    Run(u8),
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(match status {
            ExitStatus::Clean => 0,
            ExitStatus::Findings => 1,
            ExitStatus::Failure => 2,
            #[cfg(target_os = "linux")]
            ExitStatus::Run(code) => code,
        })
    }
}
