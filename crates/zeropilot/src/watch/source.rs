//! What is watched: a run by its record, or this machine.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use zeropilot_cluster::NvidiaGauge;
use zeropilot_cluster::discovery::NoDriver;
use zeropilot_cluster::gauge::Gauge;
use zeropilot_record::{RunInfo, Saved};
use zeropilot_run::checkpoint::last_complete;
use zeropilot_run::process::{Rank, all, ranks};
use zeropilot_run::{Follower, Record, Standing, gpu_uses, now};
use zeropilot_text::Language;
use zeropilot_view::run::nodes::JobLook;
use zeropilot_view::run::watch::machine::{HostMemory, MachineLook, TrainingProcess};
use zeropilot_view::run::watch::{Digest, Look};

use crate::records::home;
use crate::runs::{self, find};

/// What was seen.
#[derive(Debug)]
pub(super) enum Seen {
    Run(Box<Look>),
    Machine(MachineLook),
}

impl Seen {
    /// Whether there will be more to see.
    pub(super) fn goes_on(&self) -> bool {
        match self {
            Self::Run(look) => look.is_running,
            Self::Machine(_) => true,
        }
    }
}

/// What is watched.
pub(super) struct Source {
    run: Option<Followed>,
    machine: Machine,
    /// Whether a run that begins later takes the place of this one.
    takes_latest: bool,
}

impl Source {
    /// A run by its name or directory, the last one, or the machine alone.
    pub(super) fn open(
        run: Option<&Path>,
        machine_only: bool,
        language: Language,
    ) -> Result<Self, String> {
        let record = match run {
            _ if machine_only => None,
            Some(run) => Some(find(Some(run), language)?),
            None => find(None, language).ok(),
        };
        let takes_latest = run.is_none() && !machine_only;
        Ok(Self { run: record.map(Followed::new), machine: Machine::new(), takes_latest })
    }

    /// The run if there is one, else the machine.
    pub(super) fn look(&mut self) -> Seen {
        if self.takes_latest && self.run.as_ref().is_none_or(|run| !run.is_running()) {
            self.take_latest(|record| record.standing() == Standing::Running);
        }
        match &mut self.run {
            Some(run) => Seen::Run(Box::new(run.look())),
            None => Seen::Machine(self.machine.look()),
        }
    }

    /// The latest run, if there is one, and the machine.
    pub(super) fn look_at_both(&mut self) -> (Option<Look>, MachineLook) {
        if self.takes_latest {
            self.take_latest(|_| true);
        }
        let look = self.run.as_mut().map(|run| {
            let mut look = run.look();
            look.checkpoint = look.checkpoint.or_else(|| saved(&look.info));
            look
        });
        (look, self.machine.look())
    }

    /// The run that began last takes the place of this one, if it is wanted.
    fn take_latest(&mut self, is_wanted: impl Fn(&Record) -> bool) {
        let is_other = |record: &Record| {
            self.run.as_ref().is_none_or(|run| run.record.directory != record.directory)
        };
        let latest = Record::list(&home()).into_iter().next();
        if let Some(record) = latest.filter(|record| is_other(record) && is_wanted(record)) {
            self.run = Some(Followed::new(record));
        }
    }
}

/// The newest checkpoint in the directory of a run, if that was written since it began.
fn saved(info: &RunInfo) -> Option<Saved> {
    let found = last_complete(Path::new(info.checkpoints.as_deref()?))?;
    let at = found.written_at().filter(|at| *at >= info.started_at)?;
    Some(Saved { step: found.step, path: found.parts.display().to_string(), at: Some(at) })
}

/// A run that is followed.
struct Followed {
    record: Record,
    follower: Follower,
    digest: Digest,
    job: Option<JobLook>,
    looked: Option<Instant>,
}

/// Records of other nodes are read no oftener than this.
const NODES: Duration = Duration::from_secs(10);

impl Followed {
    fn new(record: Record) -> Self {
        let follower = Follower::new(&record.directory);
        Self { record, follower, digest: Digest::default(), job: None, looked: None }
    }

    fn is_running(&self) -> bool {
        self.record.standing() == Standing::Running
    }

    fn look(&mut self) -> Look {
        // Whether it ended is asked first: then its last events are there too.
        if self.record.verdict.is_none()
            && let Ok(record) = Record::open(&self.record.directory)
        {
            self.record = record;
        }
        let is_running = self.is_running();
        for event in self.follower.fresh().unwrap_or_default() {
            self.digest.take(&event);
        }
        Look {
            info: self.record.info.clone(),
            verdict: self.record.verdict.clone(),
            is_running,
            now: now(),
            digest: self.digest.clone(),
            host: host_memory(),
            checkpoint: self.record.verdict.as_ref().and_then(|end| end.checkpoint.clone()),
            job: self.job(),
        }
    }

    /// The job that it is a part of; records of other nodes are read now and then.
    fn job(&mut self) -> Option<JobLook> {
        self.record.info.node.as_ref()?;
        if self.looked.is_none_or(|looked| looked.elapsed() >= NODES) {
            self.looked = Some(Instant::now());
            self.job = runs::job_of(&self.record);
        }
        self.job.clone()
    }
}

struct Machine {
    gauge: Result<NvidiaGauge, NoDriver>,
}

impl Machine {
    fn new() -> Self {
        Self { gauge: NvidiaGauge::open() }
    }

    fn look(&self) -> MachineLook {
        let ranks = ranks(&all());
        let pids: BTreeMap<u32, u32> = ranks.iter().map(|rank| (pid(rank), rank.rank)).collect();
        let readings = self.gauge.as_ref().map_err(Clone::clone).and_then(Gauge::read);
        MachineLook {
            gpus: readings.map(|readings| gpu_uses(readings, &pids)),
            memory: host_memory(),
            processes: ranks.iter().map(process).collect(),
        }
    }
}

fn host_memory() -> Option<HostMemory> {
    HostMemory::read(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn pid(rank: &Rank) -> u32 {
    u32::try_from(rank.process.pid).unwrap_or(0)
}

fn process(rank: &Rank) -> TrainingProcess {
    let words = fs::read(format!("/proc/{}/cmdline", rank.process.pid)).unwrap_or_default();
    let words: Vec<_> = words.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    TrainingProcess {
        rank: rank.rank,
        pid: pid(rank),
        rss: rank.process.rss(),
        command: shortened(&words),
    }
}

/// A command from its script on, whose place and interpreter say little.
fn shortened<S: AsRef<str>>(words: &[S]) -> String {
    let is_script = |word: &S| word.as_ref().ends_with(".py");
    let script = words.iter().position(is_script).unwrap_or(0);
    let name = |word: &S| word.as_ref().rsplit('/').next().unwrap_or_default().to_owned();
    let rest = words.iter().skip(script + 1).map(|word| word.as_ref().to_owned());
    let words: Vec<String> = words.get(script).map(name).into_iter().chain(rest).collect();
    words.join(" ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_command_is_told_from_its_script_on() {
        let words = ["/opt/bin/python3", "-u", "/home/me/train.py", "--deepspeed", "ds.json", ""];
        assert_eq!(shortened(&words), "train.py --deepspeed ds.json");
        assert_eq!(shortened(&["/opt/bin/python3", "-m", "axolotl"]), "python3 -m axolotl");
        assert_eq!(shortened::<&str>(&[]), "");
    }
}
