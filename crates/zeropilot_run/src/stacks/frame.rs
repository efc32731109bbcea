//! Python stacks as data, and reading them as `faulthandler` and py-spy write them.

use std::fmt::{self, Write as _};
use std::path::Path;

use serde::Deserialize;

/// Parts of paths of packages and of Python itself, also of packages that run from a checkout.
const OF_LIBRARIES: [&str; 9] = [
    "/site-packages/",
    "/dist-packages/",
    "/lib/python3",
    "/lib64/python3",
    "/deepspeed/runtime/",
    "/deepspeed/comm/",
    "/deepspeed/utils/",
    "/torch/distributed/",
    "/torch/nn/modules/",
];

/// A function that was entered and not left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) function: String,
}

impl Frame {
    /// The file and line.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.file, self.line)
    }

    /// Whether it stands in this file of a package, wherever that is installed.
    pub(crate) fn is_in(&self, file: &str) -> bool {
        self.file.strip_suffix(file).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    }

    /// Whether it belongs to a package or to Python itself rather than to the training program.
    pub(crate) fn is_of_library(&self) -> bool {
        self.file.starts_with('<') || OF_LIBRARIES.iter().any(|part| self.file.contains(part))
    }
}

/// A stack of Python functions, the innermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    pub(crate) frames: Vec<Frame>,
}

/// The threads of a process, the main one first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stack {
    pub(crate) threads: Vec<Thread>,
}

impl Stack {
    /// Reads what `faulthandler` writes, the main thread being the last of it.
    pub(crate) fn read_faulthandler(text: &str) -> Self {
        let mut threads: Vec<Thread> = Vec::new();
        for line in text.lines() {
            if line.ends_with("(most recent call first):") {
                threads.push(Thread::default());
            } else if let (Some(frame), Some(thread)) = (frame(line), threads.last_mut()) {
                thread.frames.push(frame);
            }
        }
        threads.reverse();
        Self { threads }
    }

    /// Reads what `py-spy dump --json` writes.
    pub(crate) fn read_py_spy(json: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Spied {
            pid: i64,
            os_thread_id: Option<i64>,
            frames: Vec<SpiedFrame>,
        }
        #[derive(Deserialize)]
        struct SpiedFrame {
            name: String,
            filename: String,
            line: i64,
        }
        let mut spied: Vec<Spied> = serde_json::from_str(json).ok()?;
        spied.sort_by_key(|thread| thread.os_thread_id != Some(thread.pid));
        let frame = |frame: SpiedFrame| Frame {
            // Newer ones write `Class.method`.
            function: frame.name.rsplit('.').next().unwrap_or_default().to_owned(),
            file: frame.filename,
            line: u32::try_from(frame.line).unwrap_or(0),
        };
        let thread =
            |thread: Spied| Thread { frames: thread.frames.into_iter().map(frame).collect() };
        Some(Self { threads: spied.into_iter().map(thread).collect() })
    }

    /// Makes the files of the training program paths from the root, as seen from where it runs.
    pub(crate) fn resolve(&mut self, directory: &Path) {
        let frames = self.threads.iter_mut().flat_map(|thread| thread.frames.iter_mut());
        for frame in frames.filter(|frame| !frame.file.starts_with(['/', '<'])) {
            frame.file = directory.join(&frame.file).to_string_lossy().into_owned();
        }
    }

    /// Whether the main thread is there down to where the program began.
    pub(crate) fn is_complete(&self) -> bool {
        let outermost = self.threads.first().and_then(|main| main.frames.last());
        outermost.is_some_and(|frame| frame.function == "<module>")
    }

    /// The main thread.
    pub(crate) fn main(&self) -> Option<&Thread> {
        self.threads.first().filter(|thread| !thread.frames.is_empty())
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, thread) in self.threads.iter().enumerate() {
            let name = if number == 0 { "main thread" } else { "thread" };
            writeln!(f, "{name} (most recent call first):")?;
            for frame in &thread.frames {
                writeln!(
                    f,
                    "  File \"{}\", line {} in {}",
                    frame.file, frame.line, frame.function
                )?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

/// `  File "train.py", line 12 in main`
fn frame(line: &str) -> Option<Frame> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.rsplit_once("\", line ")?;
    let (line, function) = rest.split_once(" in ")?;
    let (line, function) = (line.parse().ok()?, function.trim_end().to_owned());
    Some(Frame { file: file.to_owned(), line, function })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_faulthandler_writes_is_read_with_the_main_thread_first() {
        let text = "Thread 0x00007f01 [feeder] (most recent call first):\n  File \"/usr/lib/python3.11/threading.py\", line 327 in wait\n\nCurrent thread 0x00007f02 (most recent call first):\n  File \"/a \"b\"/t.py\", line 7 in step\n  File \"/a \"b\"/t.py\", line 12 in <module>\n";
        let stack = Stack::read_faulthandler(text);
        assert!(stack.is_complete());
        let main = stack.main().expect("a thread");
        assert_eq!((main.frames[0].place().as_str(), main.frames.len()), ("/a \"b\"/t.py:7", 2));
        assert!(stack.threads[1].frames[0].is_of_library() && !main.frames[0].is_of_library());
        // What is written down reads back.
        let mut again = Stack::read_faulthandler(&stack.to_string());
        again.threads.reverse();
        assert_eq!(again, stack);
        assert!(!Stack::read_faulthandler(&text[..text.len() - 20]).is_complete());
    }

    #[test]
    fn what_py_spy_writes_is_read() {
        let json = r#"[{"pid":7,"thread_id":1,"thread_name":"x","os_thread_id":9,"active":false,"owns_gil":false,"frames":[],"process_info":null},
            {"pid":7,"thread_id":2,"thread_name":"MainThread","os_thread_id":7,"active":true,"owns_gil":false,
             "frames":[{"name":"Handle.<locals>.wait","filename":"/s/site-packages/deepspeed/runtime/zero/partition_parameters.py","module":null,"short_filename":"x","line":765,"locals":null,"is_entry":true}]}]"#;
        let stack = Stack::read_py_spy(json).expect("stacks");
        let frame = &stack.main().expect("a thread").frames[0];
        assert_eq!((frame.function.as_str(), frame.line), ("wait", 765));
        assert!(frame.is_in("deepspeed/runtime/zero/partition_parameters.py"));
        assert!(!frame.is_in("meters.py"));
    }
}
