//! Stacks by py-spy, which reads the memory of a process and needs the right to trace it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use zeropilot_record::NoStack;

use super::frame::Stack;

/// How long one dump may take; a rank in the kernel may not answer.
const LIMIT: Duration = Duration::from_secs(10);
/// What it says where the system does not let it.
const REFUSED: [&str; 3] = ["Permission denied", "Operation not permitted", "SYS_PTRACE"];

/// The stack of a process.
pub(super) fn ask(pid: i32) -> Result<Stack, NoStack> {
    let tool = tool(pid).ok_or(NoStack::NoTool)?;
    let started = Command::new(tool)
        .args(["dump", "--json", "--nonblocking", "--pid", &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = started.map_err(|_| NoStack::NoTool)?;
    let [out, err] = [read(child.stdout.take()), read(child.stderr.take())];
    wait(&mut child);
    let [out, err] = [out, err].map(|reader| reader.join().unwrap_or_default());
    let is_refused = REFUSED.iter().any(|words| err.contains(words));
    let missing = if is_refused { NoStack::Refused } else { NoStack::NoAnswer };
    Stack::read_py_spy(&out).filter(|stack| stack.main().is_some()).ok_or(missing)
}

/// It, from beside the rank's Python, or from the path.
fn tool(pid: i32) -> Option<PathBuf> {
    let beside = fs::read(format!("/proc/{pid}/cmdline")).ok().and_then(|line| {
        let program = line.split(|byte| *byte == 0).next()?;
        Some(Path::new(std::str::from_utf8(program).ok()?).with_file_name("py-spy"))
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).map(|directory| directory.join("py-spy"));
    beside.into_iter().chain(on_path).find(|path| path.is_file())
}

fn read(source: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until then is all there is.
        let _ = source.map(|mut source| source.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child) {
    let end = Instant::now() + LIMIT;
    while Instant::now() < end {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(50)),
            _ => return,
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}
