//! Running again whenever a file changes. Between changes nothing runs: the system tells.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use notify::{Event, EventKind, RecursiveMode, Watcher as _, recommended_watcher};

use crate::exit_status::ExitStatus;
use crate::files;

/// Wipes the terminal and begins at its top.
pub(crate) const CLEAR: &str = "\u{1b}[2J\u{1b}[H";

/// One save is several events; what comes within this time is one change.
const TOGETHER: Duration = Duration::from_millis(80);

/// Names of files that can be part of a check end like this.
const EXTENSIONS: [&str; 5] = ["json", "hjson", "yaml", "yml", "py"];

/// Runs a pass now and after every change. Ends only if nobody tells of changes any more.
pub(crate) fn run(paths: &[PathBuf], mut pass: impl FnMut()) -> notify::Result<ExitStatus> {
    let (sender, changes) = mpsc::channel();
    let mut watcher = recommended_watcher(move |event: notify::Result<Event>| {
        // If nobody listens the program is about to end.
        let _ = sender.send(event);
    })?;
    for path in paths {
        let (place, mode) = place_of(path);
        watcher.watch(place, mode)?;
    }
    pass();
    while next(&changes, paths) {
        pass();
    }
    Ok(ExitStatus::Clean)
}

/// What is watched for a path: a directory with everything below it. Editors replace files, so a
/// file is watched through its directory; what a script names stands somewhere below its own.
fn place_of(path: &Path) -> (&Path, RecursiveMode) {
    if path.is_dir() {
        return (path, RecursiveMode::Recursive);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let mode =
        if files::is_script(path) { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
    (directory.unwrap_or(Path::new(".")), mode)
}

/// Waits for a change that matters and for the rest of it; false if there will be none.
fn next(changes: &Receiver<notify::Result<Event>>, paths: &[PathBuf]) -> bool {
    loop {
        let Ok(event) = changes.recv() else { return false };
        if event.is_ok_and(|event| matters(&event, paths)) {
            break;
        }
    }
    while changes.recv_timeout(TOGETHER).is_ok() {}
    true
}

fn matters(event: &Event, paths: &[PathBuf]) -> bool {
    let is_change = !matches!(event.kind, EventKind::Access(_));
    is_change && event.paths.iter().any(|path| is_input(path, paths))
}

fn is_input(path: &Path, paths: &[PathBuf]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
    files::is_script(path)
        || EXTENSIONS.iter().any(|known| extension.eq_ignore_ascii_case(known))
        || paths.iter().any(|named| named.file_name() == path.file_name())
}
