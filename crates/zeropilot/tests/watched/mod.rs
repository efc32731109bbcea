//! A run to be watched: its record, whose supervisor is the test itself.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use zeropilot_record::{Event, RankMemory, RunEvent, RunInfo, Setup};
use zeropilot_run::now;

pub(crate) struct Watched {
    home: TempDir,
    record: PathBuf,
}

impl Watched {
    /// A run at step 3 of 10, with two ranks of 1 and 2 GiB.
    pub(crate) fn running(id: &str) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        let record = home.path().join(id);
        fs::create_dir(&record).expect("a directory");
        let info = RunInfo {
            shape: 1,
            id: id.to_owned(),
            started_at: now() - 60.0,
            predicted: Some(4 << 30),
            total_steps: Some(10),
            supervisor: std::process::id(),
            ..RunInfo::default()
        };
        let text = serde_json::to_string(&info).expect("JSON");
        fs::write(record.join("run.json"), text).expect("written");
        let watched = Self { home, record };
        watched.add(RunEvent::AttemptStarted { attempt: 1, strategy: Setup::AsGiven, pid: 1 });
        watched.step(3, 2.5);
        let ranks = [0, 1].map(|rank| RankMemory { rank, rss: (u64::from(rank) + 1) << 30 });
        watched.add(RunEvent::Memory { ranks: ranks.to_vec() });
        watched
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn step(&self, step: u64, loss: f64) {
        self.add(RunEvent::Step { step, loss: Some(loss) });
    }

    fn add(&self, happening: RunEvent) {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(self.record.join("events.jsonl"))
            .expect("the events");
        writeln!(file, "{}", Event::new(now(), happening).line()).expect("written");
    }
}
