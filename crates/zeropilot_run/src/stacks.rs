//! Where ranks stand when nothing moves: their Python stacks, which they write themselves by a [`Handler`] or py-spy reads,
//! the collectives that PyTorch recorded, and otherwise what the kernel says.

mod flight_recorder;
mod frame;
mod handler;
mod py_spy;

use std::fs;
use std::path::Path;
use std::time::Duration;

use zeropilot_record::NoStack;

pub(crate) use self::flight_recorder::{Call, Calls, DEFAULT_GROUP};
pub(crate) use self::frame::{Frame, Stack, Thread};
pub(crate) use self::handler::Handler;
use crate::process::{Process, Rank, children};

/// How long ranks that do not move may take to answer, all together.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long ranks may that train.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Children of a rank that are looked at.
const CHILDREN: usize = 16;

/// Calls of each process group that are written down.
const WRITTEN_CALLS: usize = 20;

/// Where a rank stands.
#[derive(Debug, Clone)]
pub(crate) struct Stood {
    pub(crate) rank: u32,
    pub(crate) process: Process,
    pub(crate) stack: Result<Stack, NoStack>,
    /// Stacks of processes that it started and that run Python too, such as data workers.
    pub(crate) children: Vec<Stack>,
    /// The state of the process and the function of the kernel it waits in.
    pub(crate) kernel: String,
    /// The collectives that it called, where PyTorch's flight recorder is on.
    pub(crate) calls: Option<Calls>,
}

/// Looks where ranks stand, and writes it into a directory. Children are asked only of ranks for which `wants` says so.
pub(crate) fn collect(
    ranks: &[Rank],
    handler: Option<&Handler>,
    directory: &Path,
    wants: impl Fn(&Stack) -> bool,
) -> Vec<Stood> {
    let asked: Vec<(Process, i32)> = ranks
        .iter()
        .filter(|rank| !rank.process.is_stopped())
        .map(|rank| (rank.process, rank.process.pid))
        .collect();
    let answers = handler.map(|handler| handler.ask(&asked, PATIENCE)).unwrap_or_default();
    let processes: Vec<Process> = asked.iter().map(|(process, _)| *process).collect();
    let calls = handler.map(|handler| handler.ask_calls(&processes, PATIENCE)).unwrap_or_default();
    let position = |pid: i32| asked.iter().position(|(process, _)| process.pid == pid);
    let answered = |pid: i32| answers.get(position(pid)?)?.clone();
    let called = |pid: i32| calls.get(position(pid)?)?.clone();
    let stand = |rank: &Rank| {
        let pid = rank.process.pid;
        let mut stack = answered(pid).map_or_else(|| py_spy::ask(pid), Ok);
        if let (Ok(stack), Some(directory)) = (&mut stack, rank.process.directory()) {
            stack.resolve(&directory);
        }
        let is_wanted = stack.as_ref().is_ok_and(&wants);
        let children = if is_wanted { of_children(pid, handler) } else { Vec::new() };
        let (kernel, calls) = (kernel(rank), called(pid));
        Stood { rank: rank.rank, process: rank.process, stack, children, kernel, calls }
    };
    let stood: Vec<Stood> = ranks.iter().map(stand).collect();
    write(&stood, directory);
    stood
}

/// The stacks of ranks that answer at once; nobody else is asked, and nothing is written.
pub(crate) fn answers(ranks: &[Rank], handler: &Handler) -> Vec<Stood> {
    let asked: Vec<_> = ranks.iter().map(|rank| (rank.process, rank.process.pid)).collect();
    let answers = handler.ask(&asked, AT_ONCE);
    let stand = |(rank, answer): (&Rank, Option<Stack>)| {
        let mut stack = answer.ok_or(NoStack::NoAnswer);
        if let (Ok(stack), Some(directory)) = (&mut stack, rank.process.directory()) {
            stack.resolve(&directory);
        }
        let (rank, process, kernel) = (rank.rank, rank.process, String::new());
        Stood { rank, process, stack, children: Vec::new(), kernel, calls: None }
    };
    ranks.iter().zip(answers).map(stand).collect()
}

/// Children that were forked write into the file of the rank, so that one is asked after the other.
fn of_children(pid: i32, handler: Option<&Handler>) -> Vec<Stack> {
    let ask = |child: Process| {
        let own =
            handler.and_then(|handler| handler.ask(&[(child, pid)], PATIENCE).pop().flatten());
        let mut stack = own.or_else(|| py_spy::ask(child.pid).ok())?;
        if let Some(directory) = child.directory() {
            stack.resolve(&directory);
        }
        Some(stack)
    };
    children(pid).into_iter().take(CHILDREN).filter_map(ask).collect()
}

/// `S futex_do_wait`
fn kernel(rank: &Rank) -> String {
    let waits = fs::read_to_string(format!("/proc/{}/wchan", rank.process.pid)).unwrap_or_default();
    // `0` where it waits in none.
    let waits = Some(waits.trim()).filter(|waits| *waits != "0").unwrap_or_default();
    format!("{} {waits}", rank.process.state).trim_end().to_owned()
}

fn write(stood: &[Stood], directory: &Path) {
    if stood.is_empty() || fs::create_dir_all(directory).is_err() {
        return;
    }
    for one in stood {
        let mut text = format!("kernel: {}\n", one.kernel);
        match &one.stack {
            Ok(stack) => text.push_str(&format!("\n{stack}")),
            Err(why) => text.push_str(&format!("no Python stack: {why:?}\n")),
        }
        for (group, calls) in one.calls.iter().flat_map(|calls| &calls.groups) {
            for (number, call) in calls.iter().rev().take(WRITTEN_CALLS).rev() {
                let state = if call.is_finished { "finished" } else { "pending" };
                text.push_str(&format!(
                    "{group} {number}: {} {:?} {state}\n",
                    call.operation, call.shapes
                ));
            }
        }
        for child in &one.children {
            text.push_str(&format!("child process\n{child}"));
        }
        // The verdict does not rest on these files.
        let _ = fs::write(directory.join(format!("rank-{}.txt", one.rank)), text);
    }
}
