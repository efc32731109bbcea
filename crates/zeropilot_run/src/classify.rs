//! Why an attempt ended, from everything that was seen.
//!
//! An exit status is one witness among several, and not the best: the `deepspeed` command exits with 0 when the process
//! it runs on the node is killed. Completion therefore needs evidence, and a failure is what explains the others: when
//! one rank runs out of memory the rest lose their connection and say so louder.

use zeropilot_diagnose::fingerprint::Meaning;
use zeropilot_record::{Cause, Ending, Evidence, Memory, Shortage};

use crate::observed::{Observed, Raised, Sign};
use crate::spikes::ThrownBack;

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// Signals that a process brings upon itself: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const OWN: [i32; 5] = [4, 6, 7, 8, 11];
/// Losses in a row that are not finite, after which a run that came to its end has not done what it was started for. A
/// single one may come from a batch in which every label is masked.
pub(crate) const DIVERGED: u64 = 3;

/// The cause, and what it rests on.
pub(crate) fn classify(observed: &Observed) -> (Cause, Vec<Evidence>) {
    let mut evidence = Vec::new();
    // A signal that ended a command which zeropilot was stopping is zeropilot's own.
    let is_own = is_stopped(observed) && observed.ending.signal().is_some();
    if observed.not_started.is_none() && !is_own {
        evidence.push(Evidence::CommandEnded(observed.ending));
    }
    if observed.is_stopped_for_numbers {
        evidence.push(not_finite(observed));
    }
    if let Some(hang) = &observed.hang {
        evidence.extend(hang.stood.iter().cloned().map(Evidence::RanksAt));
        evidence.extend(hang.reason.clone().map(Evidence::Hang));
    }
    let cause = asked(observed).or_else(|| completed(observed, &mut evidence));
    let cause = cause.unwrap_or_else(|| failure(observed, &mut evidence));
    if let Some((since, LASTING..)) = observed.norm_not_finite {
        evidence.push(Evidence::NormNotFiniteSince(since));
    }
    if let (Some(step), Some(total)) = (observed.last_step, observed.total_steps)
        && cause != Cause::Completed
        && step >= total
    {
        evidence.push(Evidence::StepsDone(total));
    }
    (cause, evidence)
}

/// Norms in a row that are no finite numbers at the end, which fp16 alone would not explain.
const LASTING: u64 = 3;

/// A program that ended by itself before its last step, if it names its steps and does not say that it is done. Of those that
/// print every tenth step, the last one printed is not the last one made.
fn ended_early(observed: &Observed) -> Option<Cause> {
    let (step, total) = (observed.last_step?, observed.total_steps?);
    let gap = if observed.step_gap == 0 { step } else { observed.step_gap };
    let is_told = observed.times(Meaning::TrainingDone) > 0;
    let is_short = observed.names_steps && !is_told && step.saturating_add(gap) < total;
    is_short.then_some(Cause::EndedEarly { step, total })
}

/// What zeropilot itself brought about.
fn asked(observed: &Observed) -> Option<Cause> {
    if observed.not_started.is_some() {
        return Some(Cause::NotStarted);
    }
    if let Some(signal) = observed.interrupted {
        return Some(Cause::Interrupted { signal });
    }
    if observed.is_stopped_for_numbers {
        return Some(Cause::NotFinite);
    }
    if let Some(ThrownBack { since, .. }) = observed.thrown_back {
        return Some(Cause::LossSpike { since });
    }
    if let Some(signal) = observed.warned.filter(|signal| left_when_warned(observed, *signal)) {
        return Some(Cause::Interrupted { signal });
    }
    observed.hang.as_ref().map(|hang| Cause::Hang { ranks: hang.odd.clone() })
}

/// Whether zeropilot itself ended it.
fn is_stopped(observed: &Observed) -> bool {
    observed.interrupted.is_some()
        || observed.is_stopped_for_numbers
        || observed.thrown_back.is_some()
        || observed.hang.is_some()
}

/// Whether the program ended because a scheduler warned it: before its last step, and with nothing else to explain it. Where
/// the last step is not known, whoever starts it again finds out at the cost of one start. Slurm signals every process of a job
/// step, which ends those that do not handle it.
fn left_when_warned(observed: &Observed, signal: i32) -> bool {
    let by_signal = killed_rank(observed).is_some_and(|(_, by)| by == signal)
        || observed.ending.signal() == Some(signal);
    if by_signal || !observed.handles_warning {
        return by_signal;
    }
    let is_done = observed.last_step >= observed.total_steps && observed.total_steps.is_some();
    let is_explained = observed.fatal().is_some()
        || killed_rank(observed).is_some()
        || !observed.ranks_left.is_empty()
        || observed.hang.is_some();
    !is_done && !is_explained
}

fn completed(observed: &Observed, evidence: &mut Vec<Evidence>) -> Option<Cause> {
    if !observed.ending.is_success() {
        return None;
    }
    if !observed.ranks_left.is_empty() {
        evidence.push(Evidence::RanksLeft(observed.ranks_left.clone()));
        return None;
    }
    if killed_rank(observed).is_some() {
        return None;
    }
    if observed.not_finite >= DIVERGED {
        return None;
    }
    let done = observed.times(Meaning::RankDone);
    if observed.has_node_launcher {
        let seen = observed.ranks_seen as u64;
        let is_done = done >= seen.max(1) || observed.times(Meaning::TrainingDone) > 0;
        evidence.push(Evidence::RanksDone { done, seen });
        return is_done.then(|| ended_early(observed).unwrap_or(Cause::Completed));
    }
    Some(ended_early(observed).unwrap_or(Cause::Completed))
}

/// A rank that ended by a signal other than the one launchers send to the rest.
fn killed_rank(observed: &Observed) -> Option<(Option<u32>, i32)> {
    let signal = |ending: Ending| match ending {
        Ending::Signaled(signal) => Some(signal),
        _ => None,
    };
    if let Some((rank, ending)) = observed.first_failure {
        let same = || observed.rank_endings.iter().find(|(_, seen)| *seen == ending);
        let rank = rank.or_else(|| same().map(|(rank, _)| *rank));
        return signal(ending).map(|signal| (rank, signal));
    }
    let seen = observed.rank_endings.iter().find_map(|(rank, ending)| {
        signal(*ending).filter(|signal| *signal != SIGTERM).map(|signal| (Some(*rank), signal))
    });
    let said = || observed.reason(Meaning::Killed).map(|sign| (sign.rank, SIGKILL));
    seen.or_else(said)
}

fn failure(observed: &Observed, evidence: &mut Vec<Evidence>) -> Cause {
    let cause = reason(observed, evidence);
    let is_said = |raised: &Raised| {
        evidence.iter().any(
            |known| matches!(known, Evidence::LogLine(line) if line.contains(raised.line.as_str())),
        )
    };
    if let Some(raised) = observed.fatal().filter(|raised| !is_said(raised)) {
        let Raised { rank, line, place, worker, .. } = raised.clone();
        evidence.push(Evidence::Exception { rank, worker, line, place });
    }
    cause
}

fn reason(observed: &Observed, evidence: &mut Vec<Evidence>) -> Cause {
    let mut by = |means: Meaning| {
        let sign = observed.reason(means)?;
        evidence.push(Evidence::LogLine(sign.line.clone()));
        Some(sign.clone())
    };
    let refused = |memory| {
        move |sign: Sign| Cause::OutOfMemory {
            memory,
            shortage: Shortage::Refused,
            phase: sign.phase,
        }
    };
    if let Some(cause) = by(Meaning::DeviceMemory).map(refused(Memory::Device)) {
        return cause;
    }
    for (means, cause) in [
        (Meaning::SharedMemory, Cause::SharedMemoryFull),
        (Meaning::DriverTooOld, Cause::DriverTooOld),
        (Meaning::DiskFull, Cause::DiskFull),
        (Meaning::NoInput, Cause::NoInput),
    ] {
        if by(means).is_some() {
            return cause;
        }
    }
    if let Some(cause) = by(Meaning::HostMemory).map(refused(Memory::Host)) {
        return cause;
    }
    if by(Meaning::LossScaleFloor).is_some() {
        return Cause::LossScaleFloor;
    }
    if let Some(sign) = by(Meaning::Hardware) {
        return Cause::DeviceFailed { rank: sign.rank.or_else(|| observed.first_failed()) };
    }
    if let Some(sign) = by(Meaning::CudaError) {
        return Cause::CudaError { rank: sign.rank.or_else(|| observed.first_failed()) };
    }
    if observed.last_step.is_none() {
        for (means, cause) in [
            (Meaning::HubUnavailable, Cause::HubUnavailable),
            (Meaning::ConfigRejected, Cause::ConfigRejected),
            (Meaning::CheckpointUnreadable, Cause::CheckpointUnreadable),
            (Meaning::NoMeeting, Cause::NoRendezvous),
        ] {
            if by(means).is_some() {
                return cause;
            }
        }
    }
    // A watchdog that gives up aborts its own process: the signal is not the reason.
    let by_itself = |signal: &i32| OWN.contains(signal);
    let aborted = killed_rank(observed).map(|(_, signal)| signal).filter(by_itself);
    let aborted = aborted.or(observed.ending.signal().filter(by_itself));
    if aborted.is_some() && by(Meaning::CollectiveTimeout).is_some() {
        return Cause::CollectiveTimeout;
    }
    if let Some(cause) = killed(observed, evidence) {
        return cause;
    }
    if let Some(rank) = left_early(observed) {
        evidence.push(Evidence::LeftEarly(rank));
        return Cause::ProgramFailed { rank: Some(rank) };
    }
    if let Some(sign) = observed.reason(Meaning::CollectiveTimeout) {
        evidence.push(Evidence::LogLine(sign.line.clone()));
        return Cause::CollectiveTimeout;
    }
    if observed.not_finite > 0 {
        evidence.push(not_finite(observed));
        return Cause::NotFinite;
    }
    if observed.ending.is_success() {
        return Cause::Unproven;
    }
    let first = first_failed(observed);
    if let Some(sign) = observed.sign(Meaning::PeerLost).filter(|_| lost_a_peer(observed, first)) {
        evidence.push(Evidence::LogLine(sign.line.clone()));
        return Cause::PeerLost;
    }
    if let Some(rank) = first {
        evidence.push(Evidence::FailedFirst(rank));
    }
    Cause::ProgramFailed { rank: first }
}

fn not_finite(observed: &Observed) -> Evidence {
    observed.not_finite_since.map_or(Evidence::LossNotFinite, Evidence::NotFiniteSince)
}

/// A rank that left without an error while the others worked: they lose it, and fail for that alone.
fn left_early(observed: &Observed) -> Option<u32> {
    let (rank, ending) = observed.first_gone?;
    let was_lost =
        [Meaning::PeerLost, Meaning::CollectiveTimeout].map(|means| observed.reason(means));
    let is_reported = observed.first_failed() == Some(rank) && ending != Ending::Unknown;
    let has_left = matches!(ending, Ending::Exited(0) | Ending::Unknown) && !is_reported;
    let others_fail = observed.first_failure.is_some_and(|(first, _)| first != Some(rank));
    (has_left && others_fail && was_lost.iter().any(Option::is_some)).then_some(rank)
}

/// Whether the first rank that failed here did so because one elsewhere was gone. Where all ranks run here the one that
/// was lost has a reason of its own.
fn lost_a_peer(observed: &Observed, first: Option<u32>) -> bool {
    let has_others = observed.world.is_some_and(|world| world > observed.ranks_seen);
    has_others && observed.lost_a_peer.contains(&first)
}

/// Something was killed: by the kernel for memory, by somebody, or by what it did itself.
fn killed(observed: &Observed, evidence: &mut Vec<Evidence>) -> Option<Cause> {
    let launcher = match (observed.ending, observed.ending.signal()) {
        (_, Some(signal)) => Some(Some(signal)),
        (Ending::Exited(_), None) => (!observed.ranks_left.is_empty()).then_some(None),
        (Ending::Signaled(_) | Ending::Unknown, None) => Some(None),
    };
    let worker = observed.reason(Meaning::WorkerKilled);
    let of_worker = worker.map(|sign| (sign.rank.or_else(|| first_failed(observed)), SIGKILL));
    let rank = killed_rank(observed).or(of_worker);
    let was_kill = matches!(rank, Some((_, SIGKILL)))
        || launcher.is_some_and(|signal| signal.is_none_or(|signal| signal == SIGKILL));
    let vanished = observed.ending.is_success();
    if observed.kernel_kills > 0 && (was_kill || vanished) {
        evidence.push(Evidence::KernelKills(observed.kernel_kills));
        return Some(Cause::OutOfMemory {
            memory: Memory::Host,
            shortage: Shortage::Killed,
            phase: None,
        });
    }
    if let Some(signal) = launcher {
        let Some(signal) = signal.filter(|signal| OWN.contains(signal)) else {
            return Some(Cause::LauncherKilled { signal });
        };
        let rank = rank.filter(|(_, own)| *own == signal).and_then(|(rank, _)| rank);
        return Some(Cause::Crashed { rank, signal });
    }
    let (rank, signal) = rank?;
    match worker {
        Some(worker) => evidence.push(Evidence::LogLine(worker.line.clone())),
        None => evidence.push(Evidence::RankSignaled { rank, signal }),
    }
    Some(match OWN.contains(&signal) {
        true => Cause::Crashed { rank, signal },
        false => Cause::RankKilled { rank, signal },
    })
}

/// The first rank that failed, if it is known.
fn first_failed(observed: &Observed) -> Option<u32> {
    let raised = || observed.sign(Meaning::Traceback).and_then(|sign| sign.rank);
    observed.first_failed().or_else(raised)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(means: Meaning) -> Sign {
        Sign {
            means,
            line: String::new(),
            rank: None,
            phase: None,
            times: 1,
            is_raised: false,
            after_steps: 0,
            at: std::time::Instant::now(),
        }
    }

    fn cause(observed: &Observed) -> Cause {
        classify(observed).0
    }

    #[test]
    fn exit_status_0_of_the_deepspeed_command_alone_proves_nothing() {
        let ended = Observed {
            ending: Ending::Exited(0),
            has_node_launcher: true,
            ranks_seen: 2,
            ..Observed::default()
        };
        assert_eq!(cause(&ended), Cause::Unproven);
        let left = Observed { ranks_left: vec![0, 1], ..ended.clone() };
        assert_eq!(cause(&left), Cause::LauncherKilled { signal: None });
        let mut done = ended;
        done.add(sign(Meaning::RankDone));
        assert_eq!(cause(&done), Cause::Unproven);
        done.add(sign(Meaning::RankDone));
        assert_eq!(cause(&done), Cause::Completed);
    }

    #[test]
    fn a_shortage_that_the_program_survived_is_no_failure() {
        let mut ended = Observed { ending: Ending::Exited(0), ..Observed::default() };
        ended.add(sign(Meaning::DeviceMemory));
        assert_eq!(cause(&ended), Cause::Completed);
    }

    #[test]
    fn the_cause_is_not_what_the_other_ranks_complain_about() {
        let mut ended = Observed { ending: Ending::Exited(1), ..Observed::default() };
        ended.add(sign(Meaning::Traceback));
        ended.add(sign(Meaning::CollectiveTimeout));
        ended.add(sign(Meaning::HostMemory));
        assert!(matches!(cause(&ended), Cause::OutOfMemory { memory: Memory::Host, .. }));
    }

    #[test]
    fn a_killed_rank_is_memory_only_if_the_kernel_says_so() {
        let first_failure = Some((Some(1), Ending::Signaled(9)));
        let ended = Observed { ending: Ending::Exited(1), first_failure, ..Observed::default() };
        assert_eq!(cause(&ended), Cause::RankKilled { rank: Some(1), signal: 9 });
        let by_kernel = Observed { kernel_kills: 1, ..ended };
        let killed = Shortage::Killed;
        assert!(
            matches!(cause(&by_kernel), Cause::OutOfMemory { shortage, .. } if shortage == killed)
        );
    }

    #[test]
    fn a_run_that_ends_with_losses_that_are_no_numbers_has_not_completed() {
        let ended = Observed { ending: Ending::Exited(0), ..Observed::default() };
        let with = |not_finite| cause(&Observed { not_finite, ..ended.clone() });
        assert_eq!((with(1), with(3)), (Cause::Completed, Cause::NotFinite));
    }

    #[test]
    fn a_program_that_ends_after_a_warning_before_its_last_step_has_not_completed() {
        let warned = Observed {
            ending: Ending::Exited(0),
            warned: Some(10),
            handles_warning: true,
            last_step: Some(7),
            total_steps: Some(20),
            ..Observed::default()
        };
        assert_eq!(cause(&warned), Cause::Interrupted { signal: 10 });
        let done = Observed { last_step: Some(20), ..warned.clone() };
        assert_eq!(cause(&done), Cause::Completed);
        let unknown = Observed { total_steps: None, ..warned.clone() };
        assert_eq!(cause(&unknown), Cause::Interrupted { signal: 10 });
        let deaf = Observed { handles_warning: false, ..warned.clone() };
        assert_eq!(cause(&deaf), Cause::Completed);
        let killed = Observed { ending: Ending::Signaled(10), ..deaf };
        assert_eq!(cause(&killed), Cause::Interrupted { signal: 10 });
        let mut failed = Observed { ending: Ending::Exited(1), ..warned };
        assert_eq!(cause(&failed), Cause::Interrupted { signal: 10 });
        failed.raise(raised(0, "KeyError: 'x'", 0));
        assert_eq!(cause(&failed), Cause::ProgramFailed { rank: None });
    }

    #[test]
    fn a_program_that_ends_by_itself_before_its_last_step_has_not_completed() {
        let ended = Observed {
            ending: Ending::Exited(0),
            names_steps: true,
            step_gap: 1,
            last_step: Some(7),
            total_steps: Some(15),
            ..Observed::default()
        };
        assert_eq!(cause(&ended), Cause::EndedEarly { step: 7, total: 15 });
        let with = |last_step, step_gap| {
            cause(&Observed { last_step: Some(last_step), step_gap, ..ended.clone() })
        };
        // Counted from 0; every fifth step printed; only one step printed.
        assert_eq!([with(14, 1), with(10, 5), with(10, 0)], [(); 3].map(|()| Cause::Completed));
        assert_eq!(with(10, 1), Cause::EndedEarly { step: 10, total: 15 });
        let counted = Observed { names_steps: false, ..ended.clone() };
        assert_eq!(cause(&counted), Cause::Completed, "losses are no steps");
        let mut told = ended;
        told.add(sign(Meaning::TrainingDone));
        assert_eq!(cause(&told), Cause::Completed, "as when the Trainer stops early");
    }

    #[test]
    fn training_that_was_done_before_the_end_went_wrong_is_said_to_be() {
        let evidence = |last_step, ending| {
            let total_steps = Some(12);
            classify(&Observed { ending, last_step, total_steps, ..Observed::default() }).1
        };
        let done = Evidence::StepsDone(12);
        assert!(evidence(Some(12), Ending::Signaled(11)).contains(&done));
        assert!(!evidence(Some(11), Ending::Signaled(11)).contains(&done));
        assert!(!evidence(Some(12), Ending::Exited(0)).contains(&done), "it is completed");
    }

    #[test]
    fn norms_that_stay_infinite_are_told_of_a_run_that_completed() {
        let with = |count| {
            let norm_not_finite = Some((4, count));
            let ending = Ending::Exited(0);
            classify(&Observed { ending, norm_not_finite, ..Observed::default() })
        };
        let word = Evidence::NormNotFiniteSince(4);
        assert!(matches!(with(3), (Cause::Completed, evidence) if evidence.contains(&word)));
        assert!(!with(2).1.contains(&word), "fp16 looks for its scale");
    }

    #[test]
    fn what_was_never_started_was_not_left_unseen() {
        let not_started = Some("no such file".to_owned());
        let ended = Observed { not_started, ..Observed::default() };
        assert_eq!(classify(&ended), (Cause::NotStarted, Vec::new()));
    }

    #[test]
    fn a_lost_peer_is_the_cause_only_if_it_ran_elsewhere() {
        let first_failure = Some((Some(1), Ending::Exited(1)));
        let here = Observed {
            ending: Ending::Exited(1),
            first_failure,
            ranks_seen: 2,
            world: Some(2),
            lost_a_peer: vec![Some(1)],
            signs: vec![sign(Meaning::PeerLost)],
            ..Observed::default()
        };
        assert_eq!(cause(&here), Cause::ProgramFailed { rank: Some(1) });
        let elsewhere = Observed { world: Some(4), ..here };
        assert_eq!(cause(&elsewhere), Cause::PeerLost);
        let own_reason = Observed { lost_a_peer: vec![Some(0)], ..elsewhere };
        assert_eq!(cause(&own_reason), Cause::ProgramFailed { rank: Some(1) });
    }

    fn raised(rank: u32, line: &str, after_steps: u64) -> Raised {
        let at = std::time::Instant::now();
        let (line, place, worker) = (line.to_owned(), None, None);
        Raised { rank: Some(rank), line, place, worker, after_steps, at }
    }

    #[test]
    fn a_line_that_was_survived_is_not_the_cause() {
        let mut ended =
            Observed { ending: Ending::Exited(1), steps_seen: 3, ..Observed::default() };
        ended.first_failure = Some((Some(0), Ending::Exited(1)));
        ended.add(Sign { is_raised: true, after_steps: 3, ..sign(Meaning::DeviceMemory) });
        ended.raise(raised(0, "torch.OutOfMemoryError: CUDA out of memory", 3));
        assert!(matches!(cause(&ended), Cause::OutOfMemory { .. }));
        // It was caught: training went on, and another exception ended it.
        ended.steps_seen = 8;
        ended.raise(raised(0, "KeyError: 'x'", 8));
        let (cause, evidence) = classify(&ended);
        assert_eq!(cause, Cause::ProgramFailed { rank: Some(0) });
        let line = "KeyError: 'x'".to_owned();
        let (rank, place, worker) = (Some(0), None, None);
        assert!(evidence.contains(&Evidence::Exception { rank, worker, line, place }));
    }

    #[test]
    fn a_warning_is_not_the_cause_if_an_exception_is() {
        let mut ended = Observed { ending: Ending::Exited(1), ..Observed::default() };
        ended.first_failure = Some((Some(0), Ending::Exited(1)));
        ended.add(sign(Meaning::DiskFull));
        assert_eq!(cause(&ended), Cause::DiskFull);
        ended.raise(raised(0, "KeyError: 'x'", 0));
        assert_eq!(cause(&ended), Cause::ProgramFailed { rank: Some(0) });
    }

    #[test]
    fn a_signal_that_the_program_raised_is_a_crash_and_a_watchdogs_abort_a_timeout() {
        let ending = Ending::Exited(1);
        let with = |signal| Observed {
            ending,
            first_failure: Some((Some(1), Ending::Signaled(signal))),
            ..Observed::default()
        };
        assert_eq!(cause(&with(11)), Cause::Crashed { rank: Some(1), signal: 11 });
        assert_eq!(cause(&with(6)), Cause::Crashed { rank: Some(1), signal: 6 });
        let mut watchdog = with(6);
        watchdog.add(sign(Meaning::CollectiveTimeout));
        assert_eq!(cause(&watchdog), Cause::CollectiveTimeout);
        // Others time out because a rank was killed.
        let mut killed = with(9);
        killed.add(sign(Meaning::CollectiveTimeout));
        assert_eq!(cause(&killed), Cause::RankKilled { rank: Some(1), signal: 9 });
    }

    #[test]
    fn the_signal_by_which_zeropilot_stops_a_run_is_no_evidence() {
        let hang = Some(crate::hang::Explained::default());
        for ending in [Ending::Signaled(15), Ending::Signaled(9), Ending::Exited(143)] {
            let stopped = Observed { ending, hang: hang.clone(), ..Observed::default() };
            let (cause, evidence) = classify(&stopped);
            assert!(matches!(cause, Cause::Hang { .. }));
            assert_eq!(evidence, []);
            let alone = classify(&Observed { ending, ..Observed::default() }).1;
            assert!(alone.contains(&Evidence::CommandEnded(ending)));
        }
    }

    #[test]
    fn a_program_without_ranks_crashes_too_and_a_shell_tells_of_its_signal() {
        let ended = |ending| cause(&Observed { ending, ..Observed::default() });
        let crashed = Cause::Crashed { rank: None, signal: 11 };
        assert_eq!(ended(Ending::Signaled(11)), crashed);
        assert_eq!(ended(Ending::Exited(139)), crashed);
        let killed = Cause::LauncherKilled { signal: Some(9) };
        assert_eq!(
            (ended(Ending::Signaled(9)), ended(Ending::Exited(137))),
            (killed.clone(), killed)
        );
        for code in [1, 128, 160, 255] {
            assert_eq!(ended(Ending::Exited(code)), Cause::ProgramFailed { rank: None }, "{code}");
        }
        // A process that is rank 0 without a launcher.
        let alone = Observed {
            ending: Ending::Signaled(11),
            rank_endings: vec![(0, Ending::Signaled(11))],
            ..Observed::default()
        };
        assert_eq!(cause(&alone), Cause::Crashed { rank: Some(0), signal: 11 });
        let mut watchdog = Observed { ending: Ending::Signaled(6), ..Observed::default() };
        watchdog.add(sign(Meaning::CollectiveTimeout));
        assert_eq!(cause(&watchdog), Cause::CollectiveTimeout);
        // The kernel killed what a script had started.
        let kernel =
            Observed { ending: Ending::Exited(137), kernel_kills: 1, ..Observed::default() };
        assert!(matches!(cause(&kernel), Cause::OutOfMemory { memory: Memory::Host, .. }));
    }

    #[test]
    fn a_rank_that_left_is_named_and_not_those_that_lost_it() {
        let mut ended = Observed { ending: Ending::Exited(1), ..Observed::default() };
        ended.first_failure = Some((Some(0), Ending::Exited(1)));
        ended.first_gone = Some((1, Ending::Exited(0)));
        ended.add(Sign { is_raised: true, ..sign(Meaning::PeerLost) });
        ended.raise(raised(0, "RuntimeError: Connection closed by peer", 0));
        assert_eq!(cause(&ended), Cause::ProgramFailed { rank: Some(1) });
        // One that ends before the others at the end of training is not to blame for what they do then.
        ended.signs.clear();
        ended.exceptions = vec![raised(0, "KeyError: 'x'", 0)];
        assert_eq!(cause(&ended), Cause::ProgramFailed { rank: Some(0) });
    }

    #[test]
    fn a_rank_that_was_asked_to_end_and_a_data_worker_that_was_killed_are_known() {
        let mut ended = Observed { ending: Ending::Exited(1), ..Observed::default() };
        ended.rank_endings = vec![(1, Ending::Signaled(15)), (0, Ending::Signaled(15))];
        ended.first_failure = Some((None, Ending::Signaled(15)));
        assert_eq!(cause(&ended), Cause::RankKilled { rank: Some(1), signal: 15 });
        let mut worker = Observed { ending: Ending::Exited(1), ..Observed::default() };
        worker.first_failure = Some((Some(1), Ending::Exited(1)));
        worker.add(Sign { is_raised: true, ..sign(Meaning::WorkerKilled) });
        assert_eq!(cause(&worker), Cause::RankKilled { rank: Some(1), signal: 9 });
    }

    #[test]
    fn broken_hardware_and_ranks_that_cannot_meet_have_names() {
        let mut ended = Observed { ending: Ending::Exited(1), ..Observed::default() };
        ended.first_failure = Some((Some(3), Ending::Exited(1)));
        ended.add(sign(Meaning::NoMeeting));
        assert_eq!(cause(&ended), Cause::NoRendezvous);
        ended.add(sign(Meaning::Hardware));
        assert_eq!(cause(&ended), Cause::DeviceFailed { rank: Some(3) });
    }
}
