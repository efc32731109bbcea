//! `zeropilot watch`, `run` and the tables of others on a real terminal: tmux, 80×24.
#![cfg(target_os = "linux")]

#[path = "watched/mod.rs"]
mod watched;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use watched::Watched;

const PATIENCE: Duration = Duration::from_secs(30);

/// A terminal of its own server, which ends with it.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// A shell in a terminal of 80×24; `None` where there is no tmux.
    fn open(name: &str, home: &Path) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is missing: apt-get install tmux");
            let _ = writeln!(std::io::stderr(), "skipped: there is no tmux");
            return None;
        }
        let terminal = Self { socket: format!("zeropilot-{name}-{}", std::process::id()) };
        let size = ["-x", "80", "-y", "24"];
        terminal.tmux(
            &[
                &["new-session", "-d", "-s", "t"],
                &size[..],
                &[
                    "env",
                    "-i",
                    "PATH=/usr/bin:/bin",
                    "TERM=screen",
                    "LC_ALL=C.UTF-8",
                    "PS1=ready> ",
                    &format!("ZEROPILOT_RUNS={}", home.display()),
                    "/bin/sh",
                ],
            ]
            .concat(),
        );
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", &self.socket, "-f", "/dev/null"]).args(arguments);
        let output =
            command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").output().expect("tmux runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What the shell runs, by process number.
    fn children(&self) -> Vec<String> {
        let shell = self.tmux(&["display-message", "-p", "-t", "t", "#{pane_pid}"]);
        let shell = shell.trim();
        let children = fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        children.expect("the shell runs").split_whitespace().map(str::to_owned).collect()
    }

    fn keys(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "t"], keys].concat());
    }

    fn run(&self, arguments: &str) {
        self.keys(&[&format!("clear; {} {arguments}", env!("CARGO_BIN_EXE_zeropilot")), "Enter"]);
    }

    fn picture(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "t"])
    }

    /// The picture as soon as it is as wanted.
    fn wait(&self, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let picture = self.picture();
            if is_wanted(&picture) {
                return picture;
            }
            assert!(began.elapsed() < PATIENCE, "no {what}:\n{picture}");
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the screen is gone and the shell answers.
    fn wait_for_shell(&self) {
        self.wait("shell", |picture| picture.trim_end().ends_with("ready>"));
        self.keys(&["echo back-$((6*7))", "Enter"]);
        self.wait("echo", |picture| picture.contains("\nback-42"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_run_is_shown_grows_with_the_terminal_and_leaves_it_as_it_was() {
    let watched = Watched::running("run-a");
    let Some(terminal) = Terminal::open("run", watched.home()) else { return };
    terminal.run("watch");
    let picture = terminal.wait("run", |picture| picture.contains("q: quit"));
    for part in ["run-a  running", "3 / 10", "2.5000", "rank 0", "rank 1", "1.00 GiB", "events"] {
        assert!(picture.contains(part), "{part}:\n{picture}");
    }
    watched.step(4, 1.5);
    terminal.wait("next step", |picture| picture.contains("4 / 10") && picture.contains("1.5000"));
    terminal.tmux(&["resize-window", "-t", "t", "-x", "120", "-y", "40"]);
    let large = terminal.wait("larger screen", |picture| {
        picture.lines().nth(39).is_some_and(|line| line.contains("q: quit"))
    });
    assert!(large.lines().any(|line| line.chars().count() > 100), "{large}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

#[test]
fn it_speaks_chinese() {
    let watched = Watched::running("run-b");
    let Some(terminal) = Terminal::open("zh", watched.home()) else { return };
    terminal.run("watch --lang zh");
    let picture = terminal.wait("run", |picture| picture.contains("退出"));
    for part in ["run-b  运行中", "步数", "速度", "事件", "峰值"] {
        assert!(picture.contains(part), "{part}:\n{picture}");
    }
    terminal.keys(&["Escape"]);
    terminal.wait_for_shell();
}

#[test]
fn a_signal_gives_the_terminal_back_too() {
    let watched = Watched::running("run-c");
    let Some(terminal) = Terminal::open("signal", watched.home()) else { return };
    for leave in ["INT", "TERM"] {
        terminal.run("watch");
        terminal.wait("run", |picture| picture.contains("q: quit"));
        if leave == "INT" {
            terminal.keys(&["C-c"]);
        } else {
            let children = terminal.children();
            let killed = Command::new("kill").arg("-TERM").args(&children).status();
            assert!(killed.expect("kill runs").success());
        }
        terminal.wait_for_shell();
    }
}

#[test]
fn without_its_terminal_nothing_stays() {
    let watched = Watched::running("run-gone");
    let Some(terminal) = Terminal::open("gone", watched.home()) else { return };
    terminal.run("watch");
    terminal.wait("run", |picture| picture.contains("q: quit"));
    let children = terminal.children();
    assert_eq!(children.len(), 1, "{children:?}");
    terminal.tmux(&["kill-server"]);
    let began = Instant::now();
    while Path::new("/proc").join(&children[0]).exists() {
        assert!(began.elapsed() < PATIENCE, "it runs on without a terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn no_color_means_none() {
    let watched = Watched::running("run-d");
    let Some(terminal) = Terminal::open("color", watched.home()) else { return };
    for (option, is_colored) in [("--color never", false), ("--color always", true)] {
        terminal.run(&format!("watch {option}"));
        terminal.wait("run", |picture| picture.contains("q: quit"));
        let raw = terminal.tmux(&["capture-pane", "-p", "-e", "-t", "t"]);
        let screen = raw.split("run-d").nth(1).expect("the run").to_owned();
        let has_colors = ["\u{1b}[3", "\u{1b}[9"].iter().any(|start| {
            screen.match_indices(start).any(|(at, _)| !screen[at..].starts_with("\u{1b}[39"))
        });
        assert_eq!(has_colors, is_colored, "{screen:?}");
        terminal.keys(&["q"]);
        terminal.wait_for_shell();
    }
}

#[test]
fn without_a_run_the_machine_is_shown() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(terminal) = Terminal::open("machine", home.path()) else { return };
    terminal.run("watch");
    let picture = terminal.wait("machine", |picture| picture.contains("q: quit"));
    assert!(picture.contains("this machine") && picture.contains("host memory"), "{picture}");
    terminal.keys(&["q"]);
    terminal.wait_for_shell();
}

/// A bar as tqdm draws it, and an error right behind it.
const BAR: &str = r#"for i in 1 2 3 4 5 6 7 8 9; do printf '\r %d0%%|###       | %d/10 [00:01<00:03, 9it/s]' $i $i >&2; sleep 0.3; done
printf 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n' >&2
exit 1
"#;

#[test]
fn the_status_of_a_run_is_not_written_behind_its_bar() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(terminal) = Terminal::open("bar", home.path()) else { return };
    let script = home.path().join("bar.sh");
    fs::write(&script, BAR).expect("a script");
    terminal.run(&format!("run -- sh {}", script.display()));
    let during = terminal.wait("bar", |picture| picture.contains("70%|"));
    assert_eq!(during.matches("%|").count(), 1, "{during}");
    assert!(!during.lines().any(|line| line.contains("%|") && line.contains('·')), "{during}");
    let after = terminal.wait("end", |picture| picture.trim_end().ends_with("ready>"));
    assert!(after.contains("  - log: torch.OutOfMemoryError: CUDA out of memory"), "{after}");
    assert_eq!(after.matches("- log:").count(), 1, "{after}");
    assert!(after.trim_end().ends_with("\nready>"), "{after}");
}

/// Python without buffers writes the text of a line and its end apart.
const APART: &str = r#"i=1; while [ $i -le 15 ]; do printf 'step %d/15 loss 2.5' $i; sleep 0.1; printf '\n'; sleep 0.4; i=$((i+1)); done
"#;

#[test]
fn the_status_of_a_run_adds_no_line_to_its_steps() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(terminal) = Terminal::open("apart", home.path()) else { return };
    let script = home.path().join("apart.sh");
    fs::write(&script, APART).expect("a script");
    terminal.run(&format!("run --no-preflight -- sh {}", script.display()));
    // The status is there in between, in a row of its own.
    terminal.wait("status", |picture| picture.lines().any(|line| line.contains(" · step ")));
    let picture = terminal.wait("end", |picture| picture.trim_end().ends_with("ready>"));
    let lines: Vec<&str> = picture.lines().map(str::trim_end).collect();
    let first = lines.iter().position(|line| *line == "step 1/15 loss 2.5").expect("a step");
    let wanted: Vec<String> = (1..=15).map(|step| format!("step {step}/15 loss 2.5")).collect();
    assert_eq!(lines[first..first + 15], wanted, "{picture}");
}

#[test]
fn tables_fit_the_terminal() {
    let home = tempfile::tempdir().expect("a directory");
    let Some(terminal) = Terminal::open("tables", home.path()) else { return };
    for (verb, last) in [
        ("plan --model llama-3.1-8b --gpus 8xH100 --seq-len 4096 --global-batch 128", "Assumed:"),
        ("memory --model llama-3.1-8b --gpus 8xH100 --compare", "Each GPU has"),
    ] {
        terminal.run(verb);
        terminal.wait("table", |picture| picture.contains(last));
        // Lines that the terminal had to break are joined again, and then longer than it is wide.
        let joined = terminal.tmux(&["capture-pane", "-p", "-J", "-t", "t"]);
        let of_answer = joined.lines().filter(|line| !line.contains("zeropilot "));
        let long: Vec<&str> =
            of_answer.filter(|line| line.trim_end().chars().count() > 80).collect();
        assert!(long.is_empty(), "{verb}: {long:#?}");
    }
}
