//! One start of the command, followed to its end.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use zeropilot_record::{Ending, Happening, RankMemory};

use crate::classify::{Observed, Sign};
use crate::guard::{self, Order, Report};
use crate::log::{self, Stream, Told};
use crate::oom::{OomCounters, killed_by_kernel};
use crate::process::{self, Process, Rank, descendants, is_node_launcher};
use crate::stacks;

/// Who is told what happens while it happens.
pub trait Observer: Send + Sync {
    /// Bytes of the command's output, to be handed on as they are.
    fn output(&self, stream: Stream, bytes: &[u8]);
    /// Something happened.
    fn happened(&self, happening: Happening);
    /// How things stand, about once a second.
    fn status(&self, status: &Status);
}

/// How things stand.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// From 1.
    pub attempt: u32,
    /// The last step.
    pub step: Option<u64>,
    /// The last loss.
    pub loss: Option<f64>,
    /// Memory of the ranks on this machine.
    pub memory: Vec<RankMemory>,
    /// Since the command was started.
    pub elapsed: Duration,
    /// Steps in a second, over the last ones.
    pub rate: Option<f64>,
}

/// How an attempt is supervised.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Silence that counts as a hang.
    pub hang_after: Option<Duration>,
    /// What processes get between being asked and being made to end.
    pub grace: Duration,
}

const TICK: Duration = Duration::from_millis(200);
const SAMPLE: Duration = Duration::from_secs(1);
/// All processes of the machine are looked through no oftener than this once the ranks are known.
const LOOK: Duration = Duration::from_secs(5);
/// Steps and samples of memory in the record are no closer than this.
const RECORD: Duration = Duration::from_secs(1);
const RECORD_MEMORY: Duration = Duration::from_secs(5);
/// Occurrences of one fingerprint in the record.
const RECORDED: u64 = 5;

/// Importing, compiling and loading are quiet: until the first step silence is no hang for at least this long.
const QUIET_START: Duration = Duration::from_secs(600);

enum Message {
    Told(Told),
    Guard(Report),
    /// The guard is gone, and everything below it.
    GuardGone,
}

/// What is needed to start.
pub(crate) struct Start<'a> {
    /// The command that makes this program a guard.
    pub(crate) guard: &'a [OsString],
    pub(crate) command: &'a [OsString],
    pub(crate) number: u32,
    pub(crate) rung: &'a str,
    pub(crate) limits: &'a Limits,
    pub(crate) signals: &'a Receiver<i32>,
    pub(crate) observer: &'a Arc<dyn Observer>,
    /// Where stacks go.
    pub(crate) stacks: &'a Path,
}

/// What is left of an attempt.
pub(crate) struct Finished {
    pub(crate) observed: Observed,
    /// The last lines of both streams.
    pub(crate) tail: Vec<String>,
    pub(crate) seconds: f64,
}

/// Starts the command and follows it until nothing of it is left.
pub(crate) fn run(start: &Start<'_>) -> Finished {
    let began = Instant::now();
    let (sender, messages) = sync_channel(1024);
    let spoken = Arc::new(AtomicU64::new(0));
    match launch(start, &sender, &spoken, began) {
        Err(error) => {
            let not_started = Some(error.to_string());
            let observed = Observed { not_started, ..Observed::default() };
            Finished { observed, tail: Vec::new(), seconds: 0.0 }
        }
        Ok((child, orders, readers)) => {
            drop(sender);
            let mut watch = Watch::new(start, child, orders, spoken, began);
            watch.follow(&messages);
            // What is still in the pipes; the readers end when all who could write have.
            for message in messages {
                if let Message::Told(told) = message {
                    watch.told(told);
                }
            }
            let tail = readers.into_iter().flat_map(|reader| reader.join().unwrap_or_default());
            let tail = tail.collect();
            let kernel_kills = watch.kills.kills_since().max(watch.killed_of_ours());
            let observed = Observed { kernel_kills, ..watch.observed };
            Finished { observed, tail, seconds: began.elapsed().as_secs_f64() }
        }
    }
}

type Launched = (Child, UnixStream, Vec<JoinHandle<Vec<String>>>);

fn launch(
    start: &Start<'_>,
    sender: &SyncSender<Message>,
    spoken: &Arc<AtomicU64>,
    began: Instant,
) -> std::io::Result<Launched> {
    let (ours, theirs) = UnixStream::pair()?;
    let (program, arguments) = start.guard.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .args(start.command)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    if std::env::var_os("PYTHONUNBUFFERED").is_none() {
        // Into a pipe Python writes only when it has enough, and silence would look like a hang.
        command.env("PYTHONUNBUFFERED", "1");
    }
    let mut child = command.spawn()?;
    let mut readers = Vec::new();
    let out = child.stdout.take().map(|out| Box::new(out) as Box<dyn Read + Send>);
    let err = child.stderr.take().map(|err| Box::new(err) as Box<dyn Read + Send>);
    for (stream, source) in [(Stream::Out, out), (Stream::Err, err)] {
        let Some(source) = source else { continue };
        let (observer, sender) = (start.observer.clone(), sender.clone());
        let spoken = spoken.clone();
        readers.push(thread::spawn(move || {
            let pass = |bytes: &[u8]| {
                let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                spoken.store(now, Ordering::Relaxed);
                observer.output(stream, bytes);
            };
            log::follow(source, pass, |told| {
                let _ = sender.send(Message::Told(told));
            })
        }));
    }
    let (reports, sender) = (ours.try_clone()?, sender.clone());
    thread::spawn(move || {
        for line in BufReader::new(reports).lines() {
            let Ok(line) = line else { break };
            if let Ok(report) = serde_json::from_str(&line) {
                let _ = sender.send(Message::Guard(report));
            }
        }
        let _ = sender.send(Message::GuardGone);
    });
    Ok((child, ours, readers))
}

struct Watch<'a> {
    start: &'a Start<'a>,
    child: Child,
    orders: UnixStream,
    spoken: Arc<AtomicU64>,
    began: Instant,
    observed: Observed,
    kills: OomCounters,
    ranks: Vec<Rank>,
    /// Every process that was a rank.
    pids: Vec<i32>,
    status: Status,
    steps: Vec<(Instant, u64)>,
    losses: u64,
    looked: Option<Instant>,
    sampled: Option<Instant>,
    recorded_step: Option<Instant>,
    recorded_memory: Option<Instant>,
    /// Since when processes are being stopped, and whether they were killed since.
    stopping: Option<(Instant, bool)>,
    has_ended: bool,
    /// Ticks of each rank when the silence was last broken.
    quiet_ticks: Vec<(u32, u64)>,
}

impl<'a> Watch<'a> {
    fn new(
        start: &'a Start<'a>,
        child: Child,
        orders: UnixStream,
        spoken: Arc<AtomicU64>,
        began: Instant,
    ) -> Self {
        Self {
            start,
            child,
            orders,
            spoken,
            began,
            observed: Observed::default(),
            kills: OomCounters::read(),
            ranks: Vec::new(),
            pids: Vec::new(),
            status: Status { attempt: start.number, ..Status::default() },
            steps: Vec::new(),
            losses: 0,
            looked: None,
            sampled: None,
            recorded_step: None,
            recorded_memory: None,
            stopping: None,
            has_ended: false,
            quiet_ticks: Vec::new(),
        }
    }

    fn follow(&mut self, messages: &Receiver<Message>) {
        loop {
            match messages.recv_timeout(TICK) {
                Ok(Message::Told(told)) => self.told(told),
                Ok(Message::Guard(report)) => self.reported(report),
                Ok(Message::GuardGone) => break,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if let Ok(signal) = self.start.signals.try_recv() {
                self.interrupt(signal);
            }
            self.tick();
        }
        // The guard ends when nothing is left, unless it was killed: then everything below it is ours.
        let _ = self.child.wait();
        let own = i32::try_from(std::process::id()).unwrap_or(0);
        guard::kill_all(own);
    }

    fn reported(&mut self, report: Report) {
        match report {
            Report::Started(pid) => self.say(Happening::AttemptStarted {
                attempt: self.start.number,
                rung: self.start.rung.to_owned(),
                pid,
            }),
            Report::Failed(error) => self.observed.not_started = Some(error),
            Report::Ended(ending) => {
                self.observed.ending = ending;
                self.has_ended = true;
                self.look();
                let left = self.ranks.iter().filter(|rank| rank.process.is_alive());
                if self.stopping.is_none() {
                    self.observed.ranks_left = left.map(|rank| rank.rank).collect();
                }
                // Whatever the command left behind has no business without it.
                self.stop(15);
            }
        }
    }

    fn told(&mut self, told: Told) {
        if let Told::Progress(progress) = told {
            self.progressed(progress);
            return;
        }
        if let Told::Fingerprint { fingerprint, line, rank, .. } = &told {
            let known = self.observed.sign(fingerprint.means).map_or(0, |sign| sign.times);
            if fingerprint.means.is_notable() && known < RECORDED {
                let (id, line) = (fingerprint.id.clone(), line.clone());
                self.say(Happening::Fingerprint { id, line, rank: *rank });
            }
        }
        note(&mut self.observed, told);
    }

    fn progressed(&mut self, progress: crate::progress::Progress) {
        let now = Instant::now();
        if let Some(loss) = progress.loss {
            self.observed.loss_is_finite = loss.is_finite();
            self.status.loss = Some(loss);
            self.losses += 1;
        }
        let step = progress.step.unwrap_or(self.losses);
        let is_new = self.observed.last_step.is_none_or(|last| step > last);
        if !is_new {
            return;
        }
        self.observed.last_step = Some(step);
        self.status.step = Some(step);
        self.steps.push((now, step));
        if self.steps.len() > 20 {
            self.steps.remove(0);
        }
        if due(&mut self.recorded_step, RECORD) {
            let loss = progress.loss.filter(|loss| loss.is_finite());
            self.say(Happening::Step { step, loss });
        }
    }

    fn interrupt(&mut self, signal: i32) {
        if self.observed.interrupted.is_some() {
            // Asked twice: no more patience.
            self.order(Order::Kill);
            return;
        }
        if !self.has_ended {
            self.observed.interrupted = Some(signal);
        }
        self.stop(signal);
    }

    /// Asks everything to end; after the grace it is made to.
    fn stop(&mut self, signal: i32) {
        if self.stopping.is_some() {
            return;
        }
        self.stopping = Some((Instant::now(), false));
        if !self.has_ended {
            self.say(Happening::Stopping { signal });
        }
        self.order(Order::Signal(signal));
    }

    fn order(&mut self, order: Order) {
        let line = serde_json::to_string(&order).unwrap_or_default();
        // Without a guard there is nobody to order, and its end is noticed elsewhere.
        let _ = writeln!(self.orders, "{line}");
    }

    fn tick(&mut self) {
        if let Some((since, false)) = self.stopping
            && since.elapsed() > self.start.limits.grace
        {
            self.stopping = Some((since, true));
            self.order(Order::Kill);
        }
        let pace = if self.ranks.is_empty() { SAMPLE } else { LOOK };
        if due(&mut self.looked, pace) {
            self.look();
        }
        self.buried();
        if due(&mut self.sampled, SAMPLE) {
            self.sample();
        }
        self.listen();
    }

    /// Looks for ranks.
    fn look(&mut self) {
        let Ok(guard) = i32::try_from(self.child.id()) else { return };
        let below = descendants(guard);
        let found = process::ranks(&below);
        self.observed.has_node_launcher |=
            below.iter().any(|process| is_node_launcher(process.pid));
        for rank in found {
            if !self.pids.contains(&rank.process.pid) {
                self.pids.push(rank.process.pid);
                self.kills.add(&rank.process.pid.to_string());
                self.ranks.push(rank);
                let pid = u32::try_from(rank.process.pid).unwrap_or(0);
                self.say(Happening::RankSeen { rank: rank.rank, pid });
            }
        }
        self.refresh();
        self.observed.ranks_seen = self.pids.len();
    }

    /// Reads the ranks again, and notes those that ended.
    fn refresh(&mut self) {
        for rank in &mut self.ranks {
            match Process::read(rank.process.pid) {
                Some(now) if now.began == rank.process.began => rank.process = now,
                _ => rank.process.state = 'X',
            }
        }
    }

    fn buried(&mut self) {
        self.refresh();
        let gone: Vec<Rank> =
            self.ranks.iter().filter(|rank| !rank.process.is_alive()).copied().collect();
        self.ranks.retain(|rank| rank.process.is_alive());
        for rank in gone {
            let ending = rank.process.ending().unwrap_or(Ending::Unknown);
            if self.stopping.is_none() {
                self.observed.rank_endings.push((rank.rank, ending));
            }
            self.say(Happening::RankGone { rank: rank.rank, ending });
        }
    }

    fn sample(&mut self) {
        let memory = |rank: &Rank| RankMemory { rank: rank.rank, rss: rank.process.rss() };
        self.status.memory = self.ranks.iter().map(memory).collect();
        self.status.elapsed = self.began.elapsed();
        self.status.rate = rate(&self.steps);
        if !self.status.memory.is_empty() && due(&mut self.recorded_memory, RECORD_MEMORY) {
            self.say(Happening::Memory { ranks: self.status.memory.clone() });
        }
        self.start.observer.status(&self.status);
    }

    /// Notices silence.
    fn listen(&mut self) {
        let Some(mut limit) = self.start.limits.hang_after else { return };
        if self.observed.last_step.is_none() {
            limit = limit.max(QUIET_START);
        }
        if self.has_ended || self.stopping.is_some() {
            return;
        }
        let spoken = Duration::from_millis(self.spoken.load(Ordering::Relaxed));
        let silence = self.began.elapsed().saturating_sub(spoken);
        // How much each rank computes is measured over the second half of the silence.
        if silence < limit / 2 {
            self.quiet_ticks.clear();
        } else if self.quiet_ticks.is_empty() {
            let ticks = |rank: &Rank| (rank.rank, rank.process.ticks);
            self.quiet_ticks = self.ranks.iter().map(ticks).collect();
        }
        if silence < limit {
            return;
        }
        let ranks = self.standing();
        stacks::dump(&self.ranks, self.start.stacks);
        self.observed.hang = Some(ranks.clone());
        self.say(Happening::Hang { seconds: silence.as_secs_f64(), ranks });
        self.stop(15);
    }

    /// Ranks that stand still by themselves: stopped ones, else the only one that computes nothing or everything.
    fn standing(&self) -> Vec<u32> {
        let stopped = self.ranks.iter().filter(|rank| rank.process.is_stopped());
        let stopped: Vec<u32> = stopped.map(|rank| rank.rank).collect();
        if !stopped.is_empty() {
            return stopped;
        }
        let computed = |rank: &Rank| {
            let before = self.quiet_ticks.iter().find(|(known, _)| *known == rank.rank)?.1;
            Some((rank.rank, rank.process.ticks.saturating_sub(before)))
        };
        let computed: Vec<(u32, u64)> = self.ranks.iter().filter_map(computed).collect();
        let busy: Vec<u32> =
            computed.iter().filter(|(_, ticks)| *ticks > 0).map(|(rank, _)| *rank).collect();
        // A rank that sleeps while the others spin, or computes while the others sleep, is the odd one.
        let idle: Vec<u32> =
            computed.iter().filter(|(_, ticks)| *ticks == 0).map(|(rank, _)| *rank).collect();
        match (busy.len(), idle.len()) {
            (_, 1) if busy.len() > 1 => idle,
            (1, _) if idle.len() > 1 => busy,
            _ => Vec::new(),
        }
    }

    /// Ranks that the kernel's log says it killed for memory.
    fn killed_of_ours(&self) -> u64 {
        let killed = killed_by_kernel();
        self.pids.iter().filter(|pid| killed.contains(pid)).count() as u64
    }

    fn say(&self, happening: Happening) {
        self.start.observer.happened(happening);
    }
}

fn note(observed: &mut Observed, told: Told) {
    match told {
        Told::Fingerprint { fingerprint, line, rank, phase } => {
            let means = fingerprint.means;
            // Memory explains an exception; which rank failed first is told by the first one.
            observed.add(Sign { means, line, rank, phase, times: 1 });
        }
        Told::FirstFailure { rank, ending } => {
            let ending = ending.unwrap_or(Ending::Unknown);
            observed.first_failure.get_or_insert((rank, ending));
        }
        Told::Progress(_) => {}
    }
}

/// Whether it is time again; the first time is now.
fn due(last: &mut Option<Instant>, pace: Duration) -> bool {
    let is_due = last.is_none_or(|last| last.elapsed() >= pace);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

fn rate(steps: &[(Instant, u64)]) -> Option<f64> {
    let (first, last) = (steps.first()?, steps.last()?);
    let seconds = last.0.duration_since(first.0).as_secs_f64();
    (seconds > 0.0).then(|| (last.1 - first.1) as f64 / seconds)
}
