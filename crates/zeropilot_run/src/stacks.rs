//! Where ranks stand when nothing moves: their Python stacks, by `py-spy` if it is installed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::Rank;

/// How long one dump may take; a rank in the kernel may not answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Writes the stacks of ranks into a directory, and gives the files that were written.
pub(crate) fn dump(ranks: &[Rank], directory: &Path) -> Vec<PathBuf> {
    let mut written = Vec::new();
    for rank in ranks {
        let Some(tool) = tool(rank.process.pid) else { continue };
        if fs::create_dir_all(directory).is_err() {
            break;
        }
        let path = directory.join(format!("rank-{}.txt", rank.rank));
        let Ok(file) = File::create(&path) else { continue };
        if run(&tool, rank.process.pid, file) {
            written.push(path);
        }
    }
    written
}

/// `py-spy` from beside the rank's Python, or from the path.
fn tool(pid: i32) -> Option<PathBuf> {
    let beside = fs::read(format!("/proc/{pid}/cmdline")).ok().and_then(|line| {
        let program = line.split(|byte| *byte == 0).next()?;
        Some(Path::new(std::str::from_utf8(program).ok()?).with_file_name("py-spy"))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("py-spy"));
    beside.into_iter().chain(on_path).find(|path| path.is_file())
}

fn run(tool: &Path, pid: i32, output: File) -> bool {
    let started = Command::new(tool)
        .args(["dump", "--nonblocking", "--pid", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else { return false };
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => return false,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}
