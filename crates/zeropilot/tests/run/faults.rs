//! Things that happen to a run, and what must be said of it then.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use zeropilot_oracle::Random;
use zeropilot_record::RunEvent;
use zeropilot_run::checkpoint::{complete, last_complete};
use zeropilot_run::{Record, Standing};

use crate::healthy::alone;
use crate::job::{Job, free_port, numbered};
use crate::supervised::{Supervised, events, marked, node_launcher, signal, workers};

/// Steps of a run that comes to its end.
const STEPS: u64 = 30;
const EVERY: u64 = 3;
/// How long nothing may move, where that is waited for, and where it must not happen.
const SHORT: u64 = 30;
const LONG: u64 = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    KillRank(u32),
    /// One of the processes that load a rank's data.
    KillWorker(u32),
    KillLauncher,
    KillNodeLauncher,
    StopRank(u32),
    /// A rank stands still for a moment.
    Pause(u32),
    /// Everything is suspended for longer than nothing may move, and continued.
    Suspend,
    /// SIGUSR1, which nobody handles.
    Warn,
    Interrupt,
    Terminate,
    Quit,
    KillGuard,
    KillZeropilot,
    /// Another run is started with the record of this one.
    SecondInRecord,
    /// Another run is started that writes to the same checkpoints.
    SecondInCheckpoints,
    /// Two nodes, of which one prints nothing.
    SilentNode,
}

const ALL: [Fault; 20] = [
    Fault::Nothing,
    Fault::KillRank(0),
    Fault::KillRank(1),
    Fault::KillWorker(0),
    Fault::KillWorker(1),
    Fault::KillLauncher,
    Fault::KillNodeLauncher,
    Fault::StopRank(0),
    Fault::StopRank(1),
    Fault::Pause(1),
    Fault::Suspend,
    Fault::Warn,
    Fault::Interrupt,
    Fault::Terminate,
    Fault::Quit,
    Fault::KillGuard,
    Fault::KillZeropilot,
    Fault::SecondInRecord,
    Fault::SecondInCheckpoints,
    Fault::SilentNode,
];

/// How the command and `--checkpoints` name the directory.
#[derive(Debug, Clone, Copy)]
enum Spelling {
    Plain,
    Slashes,
    Absolute,
    Detour,
    Link,
    /// The command and the option name it differently.
    Twice,
}

const SPELLINGS: [Spelling; 6] = [
    Spelling::Plain,
    Spelling::Slashes,
    Spelling::Absolute,
    Spelling::Detour,
    Spelling::Link,
    Spelling::Twice,
];

impl Spelling {
    /// The argument of the program, and the option.
    fn words(self, job: &Job) -> (String, Option<String>) {
        let absolute = job.path("ckpt").display().to_string();
        match self {
            Self::Plain => ("ckpt".to_owned(), None),
            Self::Slashes => ("./ckpt//".to_owned(), None),
            Self::Absolute => (absolute, None),
            Self::Detour => {
                fs::create_dir(job.path("sub")).expect("a directory");
                ("sub/../ckpt".to_owned(), None)
            }
            Self::Link => {
                fs::create_dir(job.path("ckpt")).expect("a directory");
                std::os::unix::fs::symlink("ckpt", job.path("linked")).expect("a link");
                ("linked".to_owned(), None)
            }
            Self::Twice => ("ckpt/.".to_owned(), Some(absolute)),
        }
    }
}

impl Fault {
    /// What must be said; nothing if nobody is left to say it.
    fn cause(self) -> Option<(&'static str, i32)> {
        Some(match self {
            Self::KillRank(_) | Self::KillWorker(_) => ("rank_killed", 12),
            Self::KillLauncher | Self::KillNodeLauncher | Self::KillGuard => {
                ("launcher_killed", 12)
            }
            Self::StopRank(_) => ("hang", 14),
            Self::Interrupt => ("interrupted", 130),
            Self::Terminate => ("interrupted", 143),
            Self::Quit => ("interrupted", 131),
            Self::KillZeropilot => return None,
            _ => ("completed", 0),
        })
    }

    /// The rank that it happens to.
    fn rank(self) -> Option<u32> {
        match self {
            Self::KillRank(rank) | Self::KillWorker(rank) | Self::StopRank(rank) => Some(rank),
            _ => None,
        }
    }

    fn ends_the_run(self) -> bool {
        self.cause().is_none_or(|(_, code)| code != 0)
    }

    /// Whether the run goes on by itself if it may; otherwise its user starts it again.
    fn is_answered(self) -> bool {
        matches!(self.cause(), Some(("rank_killed" | "launcher_killed" | "hang", _)))
    }
}

/// What is drawn.
#[derive(Debug)]
pub(crate) struct Draw {
    fault: Fault,
    launcher: &'static str,
    stage: u64,
    step: u64,
    spelling: Spelling,
    workers: u32,
    leaves_helper: bool,
    /// Whether the run goes on from its checkpoint, to be compared with one that nothing happened to.
    is_resumed: bool,
}

impl Draw {
    pub(crate) fn new(random: &mut Random) -> Self {
        let fault = *random.pick(&ALL);
        let launcher = match fault {
            Fault::KillNodeLauncher => "deepspeed",
            _ => *random.pick(&["torchrun", "deepspeed"]),
        };
        let needs_workers = matches!(fault, Fault::KillWorker(_));
        Self {
            fault,
            launcher,
            stage: random.between(1, 3),
            step: random.between(2, 9),
            spelling: *random.pick(&SPELLINGS),
            workers: if needs_workers || random.chance(30) { 2 } else { 0 },
            leaves_helper: random.chance(30),
            is_resumed: fault.ends_the_run() && random.chance(50),
        }
    }

    fn arguments(&self, save: &str) -> String {
        let steps = if self.fault.ends_the_run() && !self.is_resumed { 100_000 } else { STEPS };
        let helper = if self.leaves_helper { " --helper" } else { "" };
        format!(
            "--steps {steps} --pause 0.2 --save {save} --save-every {EVERY} --workers {}{helper}",
            self.workers
        )
    }

    fn options(&self, checkpoints: Option<&str>) -> Vec<String> {
        let limit = match self.fault {
            Fault::StopRank(_) | Fault::Suspend | Fault::SilentNode => SHORT,
            _ => LONG,
        };
        let restarts = if self.is_resumed { "2" } else { "0" };
        let mut options = vec!["--hang-after".to_owned(), format!("{limit}s")];
        options.extend(["--max-restarts".to_owned(), restarts.to_owned()]);
        options.extend(["--resume-with".to_owned(), "--resume {}".to_owned()]);
        if self.is_resumed && !self.fault.is_answered() {
            options.push("--continue".to_owned());
        }
        if let Some(checkpoints) = checkpoints {
            options.extend(["--checkpoints".to_owned(), checkpoints.to_owned()]);
        }
        options
    }
}

/// What every step prints in a run that nothing happens to: its number, loss, global batch and samples so far.
#[derive(Default)]
pub(crate) struct References(BTreeMap<u64, Vec<String>>);

impl References {
    /// Of a stage, by the launcher alone.
    fn of(&mut self, home: &Path, stage: u64) -> &[String] {
        self.0.entry(stage).or_insert_with(|| {
            let job = Job::new(home, stage);
            let output = Command::new("torchrun")
                .args(["--nproc-per-node", "2", "--master-port", &free_port().to_string()])
                .arg(numbered())
                .args(["--deepspeed", "ds.json", "--steps", &STEPS.to_string()])
                .current_dir(job.directory.path())
                .envs(zeropilot_oracle::surroundings(home))
                .output()
                .expect("torchrun runs");
            let steps = steps(&String::from_utf8_lossy(&output.stdout));
            assert_eq!(steps.len() as u64, STEPS, "{}", String::from_utf8_lossy(&output.stderr));
            steps
        })
    }
}

/// What the steps in an output print. A rank that is killed may leave its line without an end.
fn steps(out: &str) -> Vec<String> {
    let said = out.split("step ").skip(1).filter_map(|rest| rest.lines().next());
    let whole = said.filter(|line| line.contains(" loss ") && line.contains(" samples "));
    whole.map(str::to_owned).collect()
}

/// Lets a fault happen at a step, and looks at what is left.
pub(crate) fn run(home: &Path, draw: &Draw, references: &mut References, what: &str) {
    if draw.fault == Fault::SilentNode {
        return silent_node(home, draw, references, what);
    }
    let job = Job::new(home, draw.stage).running(numbered());
    let (save, checkpoints) = draw.spelling.words(&job);
    let (arguments, options) = (draw.arguments(&save), draw.options(checkpoints.as_deref()));
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let mut run = job.start(&options, draw.launcher, &arguments);
    if draw.fault != Fault::Nothing {
        run.wait_for_step(draw.step);
    }
    let root = job.path("ckpt");
    let before = kept(&root);
    happen(draw.fault, &job, &mut run, what);
    let is_over = !(draw.is_resumed && draw.fault.is_answered());
    let standing = match draw.fault.cause() {
        Some((cause, code)) => {
            let (ended, verdict) = run.end();
            let attempts = verdict["attempts"].as_array().expect("attempts");
            let first = &attempts[0];
            let said = (first["cause"].as_str(), ended);
            let printed = job.printed();
            let expected = if is_over { code } else { 0 };
            assert_eq!(said, (Some(cause), Some(expected)), "{what}: {verdict:#}\n{printed}");
            if let (Some(named), Some(rank)) = (first["rank"].as_u64(), draw.fault.rank()) {
                assert_eq!(named, u64::from(rank), "{what}: {verdict:#}");
            }
            assert_eq!(attempts.len(), if is_over { 1 } else { 2 }, "{what}: {verdict:#}");
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
    let after = kept(&root);
    assert!(
        before.iter().all(|step| after.contains(step)),
        "{what}: a checkpoint was lost: {before:?}, {after:?}"
    );
    let mut made = printed_steps(&job);
    if draw.is_resumed && is_over {
        let (code, verdict) = job.start(&options, draw.launcher, &arguments).end();
        assert_eq!(code, Some(0), "{what}: {verdict:#}\n{}", job.printed());
        made.extend(printed_steps(&job));
    }
    if draw.is_resumed || !draw.fault.ends_the_run() {
        assert_same(&made, references.of(home, draw.stage), what);
        let last = last_complete(&root).map(|found| found.step);
        assert_eq!(last, Some(STEPS), "{what}");
    }
    if !draw.fault.ends_the_run() {
        assert_eq!(made.len() as u64, STEPS, "{what}: each step is made once");
    }
}

/// Every step that was made printed what it prints in the reference, whose end was reached.
fn assert_same(made: &[String], reference: &[String], what: &str) {
    for step in made {
        assert!(reference.contains(step), "{what}: {step:?} is not in {reference:#?}");
    }
    for step in reference {
        assert!(made.contains(step), "{what}: {step:?} is not in {made:#?}");
    }
    assert_eq!(made.last(), reference.last(), "{what}");
}

fn printed_steps(job: &Job) -> Vec<String> {
    steps(&fs::read_to_string(job.path("out.log")).unwrap_or_default())
}

/// The steps of complete checkpoints.
fn kept(root: &Path) -> Vec<u64> {
    complete(root).into_iter().map(|found| found.step).collect()
}

fn happen(fault: Fault, job: &Job, run: &mut Supervised, what: &str) {
    let mark = &job.mark;
    let number = |pid: i32| u32::try_from(pid).expect("a process");
    match fault {
        Fault::Nothing | Fault::SilentNode => {}
        Fault::KillRank(rank) => signal("KILL", run.rank(rank)),
        Fault::KillWorker(rank) => {
            let found = workers(run.rank(rank));
            signal("KILL", *found.first().unwrap_or_else(|| panic!("{what}: no data worker")));
        }
        Fault::KillLauncher => signal("KILL", run.launcher()),
        Fault::KillNodeLauncher => signal("KILL", node_launcher(mark)),
        Fault::StopRank(rank) => signal("STOP", run.rank(rank)),
        Fault::Pause(rank) => {
            signal("STOP", run.rank(rank));
            std::thread::sleep(Duration::from_secs(3));
            signal("CONT", run.rank(rank));
        }
        Fault::Suspend => {
            let all = marked(mark);
            all.iter().for_each(|(pid, _)| signal("STOP", number(*pid)));
            std::thread::sleep(Duration::from_secs(SHORT + 5));
            all.iter().for_each(|(pid, _)| signal("CONT", number(*pid)));
        }
        Fault::Warn => {
            signal("USR1", run.child.id());
            run.wait_until("the word", |_| job.printed().contains("did not forward signal 10"));
        }
        Fault::Interrupt => signal("INT", run.child.id()),
        Fault::Terminate => signal("TERM", run.child.id()),
        Fault::Quit => signal("QUIT", run.child.id()),
        Fault::KillGuard => {
            let guard = marked(mark).into_iter().find(|(_, line)| line.contains("__guard"));
            signal("KILL", number(guard.expect("a guard").0));
        }
        Fault::KillZeropilot => signal("KILL", run.child.id()),
        Fault::SecondInRecord => {
            let output = Command::new(env!("CARGO_BIN_EXE_zeropilot"))
                .args(["run", "--record", "record", "--", "echo", "second"])
                .current_dir(job.directory.path())
                .env("ZEROPILOT_RUNS", job.path("runs"))
                .output()
                .expect("zeropilot runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{what}: {said}");
            assert!(output.stdout.is_empty(), "{what}: the second run was started");
        }
        Fault::SecondInCheckpoints => {
            let second = job.beside();
            let save = job.path("ckpt").display().to_string();
            let words = format!("--steps 100000 --pause 0.2 --save {save} --save-every 1000000");
            let mut other = second.start_command(&["--no-preflight"], &alone(&words));
            other
                .wait_until("the word", |_| second.printed().contains("writes its checkpoints to"));
            signal("TERM", other.child.id());
            assert_eq!(other.end().0, Some(143), "{what}: {}", second.printed());
        }
    }
}

/// Two supervisors with a rank each. Only rank 0 prints, so that one of them sees no step.
fn silent_node(home: &Path, draw: &Draw, references: &mut References, what: &str) {
    let jobs = [0, 1].map(|_| Job::new(home, draw.stage).running(numbered()));
    let save = jobs[0].path("ckpt");
    let port = free_port();
    let options = draw.options(None);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let runs = [0, 1].map(|node: usize| {
        let launcher = format!(
            "torchrun --nnodes 2 --node-rank {node} --nproc-per-node 1 --master-addr 127.0.0.1 --master-port {port}"
        );
        jobs[node].start(&options, &launcher, &draw.arguments(&save.display().to_string()))
    });
    for (run, job) in runs.into_iter().zip(&jobs) {
        let (code, verdict) = run.end();
        let said = (verdict["cause"].as_str(), code);
        assert_eq!(said, (Some("completed"), Some(0)), "{what}: {verdict:#}\n{}", job.printed());
        let hung = |event: &RunEvent| matches!(event, RunEvent::Hang { .. });
        assert!(!events(job.directory.path()).iter().any(hung), "{what}");
    }
    assert_same(&printed_steps(&jobs[0]), references.of(home, draw.stage), what);
    assert_eq!(printed_steps(&jobs[1]), [] as [String; 0], "{what}");
    assert_eq!(last_complete(&save).map(|found| found.step), Some(STEPS), "{what}");
}
