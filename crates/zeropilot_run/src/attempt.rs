//! One start of the command, followed to its end.

mod ranks;
mod silence;
mod stragglers;
mod watch;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use zeropilot_record::{RankMemory, RunEvent, Setup};

use self::watch::Watch;
pub(crate) use self::watch::spacing;
use crate::guard::{self, Report};
use crate::log::{self, LastLines, Stream, Told};
use crate::observed::Observed;
use crate::stacks::Handler;

/// Who is told what happens while it happens.
pub trait Observer: Send + Sync {
    /// Bytes of the command's output, to be handed on as they are.
    fn output(&self, stream: Stream, bytes: &[u8]);
    /// Something happened.
    fn happened(&self, happening: RunEvent);
    /// How things stand, about once a second.
    fn status(&self, status: &Status);
    /// Whether whoever reads the output keeps it waiting now: then the run may wait too, and does not hang.
    fn is_blocked(&self) -> bool {
        false
    }
}

/// How things stand.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// From 1.
    pub attempt: u32,
    /// The last step.
    pub step: Option<u64>,
    /// Steps there will be, if the log tells.
    pub total_steps: Option<u64>,
    /// The last loss.
    pub loss: Option<f64>,
    /// Memory of the ranks on this machine.
    pub memory: Vec<RankMemory>,
    /// Since the command was started.
    pub elapsed: Duration,
    /// Steps in a second, over the last ones.
    pub rate: Option<f64>,
    /// Tokens in a second over all ranks, if the log tells.
    pub tokens_per_second: Option<f64>,
}

/// How an attempt is supervised.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Silence that counts as a hang.
    pub hang_after: Option<Duration>,
    /// Time without a step that counts as a hang, whatever is printed.
    pub step_timeout: Option<Duration>,
    /// Whether to stop once the numbers of training are none.
    pub stop_on_nan: bool,
    /// Whether to stop once the loss has jumped and stays high, to go back to a checkpoint before it.
    pub rollback_on_spike: bool,
    /// Whether to look now and then which rank the others wait for.
    pub finds_stragglers: bool,
    /// Whether ranks may get a handler by which they write their stacks.
    pub has_stack_handler: bool,
    /// What processes get between being asked and being made to end.
    pub grace: Duration,
}

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
    pub(crate) strategy: &'a Setup,
    pub(crate) limits: &'a Limits,
    pub(crate) signals: &'a Receiver<i32>,
    pub(crate) observer: &'a Arc<dyn Observer>,
    /// Ranks of the whole run, if the command says so.
    pub(crate) world: Option<usize>,
    /// Steps that the command asks for, if it says so.
    pub(crate) total_steps: Option<u64>,
    /// Seconds that a step is predicted to take.
    pub(crate) predicted_step: Option<f64>,
    /// Where stacks go.
    pub(crate) stacks: &'a Path,
    /// The directory of the record.
    pub(crate) record: &'a Path,
    /// By which ranks write them themselves.
    pub(crate) handler: Option<&'a Handler>,
    /// Keeps the last lines, now and then: whoever is killed leaves them behind.
    pub(crate) keep_tail: &'a dyn Fn(&[String]),
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
        Ok((child, orders, tails)) => {
            drop(sender);
            let mut watch = Watch::new(start, child, orders, spoken, began);
            watch.tails = tails.clone();
            watch.follow(&messages);
            drain(&messages, &mut watch);
            watch.record_step();
            watch.step_writer.end();
            let tail = tails.iter().flat_map(LastLines::lines).collect();
            let kernel_kills = watch.kernel_kills();
            let observed = Observed { kernel_kills, ..watch.observed };
            Finished { observed, tail, seconds: began.elapsed().as_secs_f64() }
        }
    }
}

/// Takes in what is still in the pipes; the readers end when all who could write have. Where nobody reads what they hand on
/// they never do, and are left behind.
fn drain(messages: &Receiver<Message>, watch: &mut Watch<'_>) {
    let mut waited = Duration::ZERO;
    while waited <= watch.start.limits.grace {
        match messages.recv_timeout(DRAIN) {
            Ok(Message::Told(told)) => watch.told(told),
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) if watch.start.observer.is_blocked() => waited += DRAIN,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

const DRAIN: Duration = Duration::from_millis(200);

type Launched = (Child, UnixStream, Vec<LastLines>);

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
        .arg0(guard::NAME)
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
    command.envs(start.handler.map(Handler::variables).unwrap_or_default());
    let mut child = command.spawn()?;
    let mut tails = Vec::new();
    let out = child.stdout.take().map(|out| Box::new(out) as Box<dyn Read + Send>);
    let err = child.stderr.take().map(|err| Box::new(err) as Box<dyn Read + Send>);
    for (stream, source) in [(Stream::Out, out), (Stream::Err, err)] {
        let Some(source) = source else { continue };
        let (observer, sender) = (start.observer.clone(), sender.clone());
        let spoken = spoken.clone();
        let tail = LastLines::new();
        tails.push(tail.clone());
        thread::spawn(move || {
            let pass = |bytes: &[u8]| {
                let now = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
                spoken.store(now, Ordering::Relaxed);
                observer.output(stream, bytes);
            };
            let tell = |told| {
                let _ = sender.send(Message::Told(told));
            };
            log::follow(source, pass, tell, &tail);
        });
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
    Ok((child, ours, tails))
}
