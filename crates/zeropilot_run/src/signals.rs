//! Signals that ask zeropilot to stop.

use std::fs;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Catches them from now on. One that was ignored when zeropilot began, as `nohup` does, stays so.
///
/// # Errors
/// If the system refuses.
pub fn catch() -> std::io::Result<Receiver<i32>> {
    catching(&[SIGINT, SIGTERM, SIGHUP])
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
    let ignored = ignored(&fs::read_to_string("/proc/self/status").unwrap_or_default());
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

/// The mask of ignored signals in `/proc/self/status`.
fn ignored(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nohup_ignores_is_seen() {
        let status = "Name:\tx\nSigIgn:\t0000000000001001\n";
        assert_eq!(ignored(status) & (1 << (SIGHUP - 1)), 1);
        assert_eq!(ignored(status) & (1 << (SIGTERM - 1)), 0);
    }
}
