//! Signals that zeropilot acts on: those that ask it to stop, and those that are meant for the run.

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;

/// What a signal is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It asks to stop.
    Stop,
    /// It is for the training program, as a scheduler warns before the time is up.
    Pass,
    /// A terminal suspends what runs on it.
    Suspend,
}

impl Kind {
    pub(crate) fn of(signal: i32) -> Self {
        match signal {
            SIGUSR1 | SIGUSR2 => Self::Pass,
            SIGTSTP => Self::Suspend,
            _ => Self::Stop,
        }
    }
}

/// Catches them from now on. One that was ignored when zeropilot began, as `nohup` does, stays so.
///
/// # Errors
/// If the system refuses.
pub fn catch() -> std::io::Result<Receiver<i32>> {
    catching(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP])
}

/// Catches those that leave a terminal behind to be given back. Without its terminal a screen has nothing to do: that
/// ends the program as it ends any.
///
/// # Errors
/// If the system refuses.
pub fn catch_on_screen() -> std::io::Result<Receiver<i32>> {
    catching(&[SIGINT, SIGTERM])
}

fn catching(wanted: &[i32]) -> std::io::Result<Receiver<i32>> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = mask(&status, "SigIgn:");
    let caught = wanted.iter().filter(|signal| ignored & (1 << (**signal - 1)) == 0);
    let mut signals = Signals::new(caught)?;
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(signal).is_err() {
                break;
            }
        }
    });
    Ok(receiver)
}

/// A mask of signals in `/proc/PID/status`.
pub(crate) fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\n";
        let ignored = mask(status, "SigIgn:");
        assert_eq!(ignored & (1 << (SIGHUP - 1)), 1);
        assert_eq!(ignored & (1 << (SIGTERM - 1)), 0);
    }
}
