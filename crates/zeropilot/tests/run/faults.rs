//! Things that happen to a run, and what must be said of it then.

use std::path::Path;
use std::time::Duration;

use zeropilot_run::checkpoint::last_complete;
use zeropilot_run::{Record, Standing};

use crate::job::Job;
use crate::supervised::{marked, node_launcher, signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    KillRank(u32),
    KillLauncher,
    KillNodeLauncher,
    StopRank(u32),
    Interrupt,
    Terminate,
    KillGuard,
    KillZeropilot,
}

pub(crate) const ALL: [Fault; 11] = [
    Fault::Nothing,
    Fault::KillRank(0),
    Fault::KillRank(1),
    Fault::KillLauncher,
    Fault::KillNodeLauncher,
    Fault::StopRank(0),
    Fault::StopRank(1),
    Fault::Interrupt,
    Fault::Terminate,
    Fault::KillGuard,
    Fault::KillZeropilot,
];

impl Fault {
    /// The launcher it needs.
    pub(crate) fn launcher(self) -> Option<&'static str> {
        (self == Self::KillNodeLauncher).then_some("deepspeed")
    }

    /// What must be said; nothing if nobody is left to say it.
    fn cause(self) -> Option<(&'static str, i32)> {
        Some(match self {
            Self::Nothing => ("completed", 0),
            Self::KillRank(_) => ("rank_killed", 12),
            Self::KillLauncher | Self::KillNodeLauncher | Self::KillGuard => {
                ("launcher_killed", 12)
            }
            Self::StopRank(_) => ("hang", 14),
            Self::Interrupt => ("interrupted", 130),
            Self::Terminate => ("interrupted", 143),
            Self::KillZeropilot => return None,
        })
    }
}

/// Lets a fault happen at a step, and looks at what is left.
pub(crate) fn run(home: &Path, fault: Fault, launcher: &str, at: (u64, u64), what: &str) {
    let (stage, step) = at;
    let job = Job::new(home, stage);
    let mark = job.mark.clone();
    let steps = if fault == Fault::Nothing { 12 } else { 100_000 };
    let arguments = format!("--steps {steps} --save ckpt --save-every 3");
    let options = ["--hang-after", "60s", "--max-restarts", "0"];
    let mut run = job.start(&options, launcher, &arguments);
    if fault != Fault::Nothing {
        run.wait_for_step(step);
    }
    let before = last_complete(&job.path("ckpt")).map(|found| found.step);
    match fault {
        Fault::Nothing => {}
        Fault::KillRank(rank) => signal("KILL", run.rank(rank)),
        Fault::KillLauncher => signal("KILL", run.launcher()),
        Fault::KillNodeLauncher => signal("KILL", node_launcher(&mark)),
        Fault::StopRank(rank) => signal("STOP", run.rank(rank)),
        Fault::Interrupt => signal("INT", run.child.id()),
        Fault::Terminate => signal("TERM", run.child.id()),
        Fault::KillGuard => {
            let guard = marked(&mark).into_iter().find(|(_, line)| line.contains("__guard"));
            signal("KILL", u32::try_from(guard.expect("a guard").0).expect("a process"));
        }
        Fault::KillZeropilot => signal("KILL", run.child.id()),
    }
    let standing = match fault.cause() {
        Some((cause, code)) => {
            let (ended, verdict) = run.end();
            assert_eq!(
                (verdict["cause"].as_str(), ended),
                (Some(cause), Some(code)),
                "{what}: {verdict:#}"
            );
            Standing::Ended
        }
        None => {
            run.child.wait().expect("it ends");
            run.assert_nothing_is_left(Duration::from_secs(15));
            Standing::Lost
        }
    };
    let record =
        Record::open(&job.path("record")).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(record.standing(), standing, "{what}");
    assert!(record.events().expect("events").count() > 2, "{what}");
    let after = last_complete(&job.path("ckpt")).map(|found| found.step);
    assert!(after >= before, "{what}: a checkpoint was lost: {before:?}, {after:?}");
}
