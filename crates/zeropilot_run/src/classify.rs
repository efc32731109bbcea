//! Why an attempt ended, from everything that was seen.
//!
//! An exit status is one witness among several, and not the best: the `deepspeed` command exits with 0 when the process
//! it runs on the node is killed. Completion therefore needs evidence, and a failure is what explains the others: when
//! one rank runs out of memory the rest lose their connection and say so louder.

use zeropilot_diagnose::fingerprint::Meaning;
use zeropilot_record::{Cause, Ending, Evidence, Memory, Shortage};

use crate::observed::{Observed, Sign};

const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;
/// Losses in a row that are not finite, after which a run that came to its end has not done what it was started for. A
/// single one may come from a batch in which every label is masked.
const DIVERGED: u64 = 3;

/// The cause, and what it rests on.
pub(crate) fn classify(observed: &Observed) -> (Cause, Vec<Evidence>) {
    let mut evidence = vec![Evidence::CommandEnded(observed.ending)];
    let cause = asked(observed).or_else(|| completed(observed, &mut evidence));
    let cause = cause.unwrap_or_else(|| failure(observed, &mut evidence));
    (cause, evidence)
}

/// What zeropilot itself brought about.
fn asked(observed: &Observed) -> Option<Cause> {
    if observed.not_started.is_some() {
        return Some(Cause::NotStarted);
    }
    if let Some(signal) = observed.interrupted {
        return Some(Cause::Interrupted { signal });
    }
    observed.hang.clone().map(|ranks| Cause::Hang { ranks })
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
        return is_done.then_some(Cause::Completed);
    }
    Some(Cause::Completed)
}

/// A rank that ended by a signal other than the one launchers send to the rest.
fn killed_rank(observed: &Observed) -> Option<(Option<u32>, i32)> {
    let signal = |ending: Ending| match ending {
        Ending::Signaled(signal) => Some(signal),
        _ => None,
    };
    if let Some((rank, ending)) = observed.first_failure {
        return signal(ending).map(|signal| (rank, signal));
    }
    let seen = observed.rank_endings.iter().find_map(|(rank, ending)| {
        signal(*ending).filter(|signal| *signal != SIGTERM).map(|signal| (Some(*rank), signal))
    });
    let said = || observed.sign(Meaning::Killed).map(|sign| (sign.rank, SIGKILL));
    seen.or_else(said)
}

fn failure(observed: &Observed, evidence: &mut Vec<Evidence>) -> Cause {
    let mut by = |means: Meaning| {
        let sign = observed.sign(means)?;
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
    if by(Meaning::DiskFull).is_some() {
        return Cause::DiskFull;
    }
    if let Some(cause) = by(Meaning::HostMemory).map(refused(Memory::Host)) {
        return cause;
    }
    if by(Meaning::LossScaleFloor).is_some() {
        return Cause::LossScaleFloor;
    }
    if observed.last_step.is_none() && by(Meaning::ConfigRejected).is_some() {
        return Cause::ConfigRejected;
    }
    if observed.last_step.is_none() && by(Meaning::CheckpointUnreadable).is_some() {
        return Cause::CheckpointUnreadable;
    }
    if let Some(cause) = killed(observed, evidence) {
        return cause;
    }
    if let Some(sign) = observed.sign(Meaning::CollectiveTimeout) {
        evidence.push(Evidence::LogLine(sign.line.clone()));
        return Cause::CollectiveTimeout;
    }
    if observed.not_finite > 0 {
        evidence.push(Evidence::LossNotFinite);
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

/// Whether the first rank that failed here did so because one elsewhere was gone. Where all ranks run here the one that
/// was lost has a reason of its own.
fn lost_a_peer(observed: &Observed, first: Option<u32>) -> bool {
    let has_others = observed.world.is_some_and(|world| world > observed.ranks_seen);
    has_others && observed.lost_a_peer.contains(&first)
}

/// Something was killed: by the kernel for memory, or by somebody.
fn killed(observed: &Observed, evidence: &mut Vec<Evidence>) -> Option<Cause> {
    let launcher = match observed.ending {
        Ending::Signaled(signal) => Some(Some(signal)),
        Ending::Unknown => Some(None),
        Ending::Exited(_) => (!observed.ranks_left.is_empty()).then_some(None),
    };
    let rank = killed_rank(observed);
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
        return Some(Cause::LauncherKilled { signal });
    }
    let (rank, signal) = rank?;
    evidence.push(Evidence::RankSignaled { rank, signal });
    Some(Cause::RankKilled { rank, signal })
}

/// The first rank that failed, if it is known.
fn first_failed(observed: &Observed) -> Option<u32> {
    let seen = observed.rank_endings.iter().find(|(_, ending)| !ending.is_success());
    let rank = match observed.first_failure {
        Some((rank, _)) => rank,
        None => seen.map(|(rank, _)| *rank),
    };
    rank.or_else(|| observed.sign(Meaning::Traceback).and_then(|sign| sign.rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sign(means: Meaning) -> Sign {
        Sign { means, line: String::new(), rank: None, phase: None, times: 1 }
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
}
