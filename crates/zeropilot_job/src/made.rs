//! Files that a script makes before it starts training.

use crate::directory::sets_variables;
use crate::launch::Launch;
use crate::shell::{Command, ShellScript};

/// Whether a script makes a file before a launch reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// No command before the launch can write it.
    No,
    /// A command before the launch may write it, or changes to a directory that only the run knows.
    Perhaps,
    /// A command before the launch names it.
    Named,
}

/// Commands that write no config.
const HARMLESS: [&str; 36] = [
    "cd",
    "pushd",
    "popd",
    "echo",
    "printf",
    "set",
    "unset",
    "shopt",
    "ulimit",
    "umask",
    "trap",
    "test",
    "[",
    "true",
    "false",
    "sleep",
    "wait",
    "exit",
    "date",
    "hostname",
    "pwd",
    "ls",
    "which",
    "mkdir",
    "rm",
    "kill",
    "nvidia-smi",
    "module",
    "conda",
    "mamba",
    "micromamba",
    "pip",
    "export",
    "ssh-add",
    "free",
    "df",
];

/// The part of a script that runs before a command.
pub(crate) struct Before<'a> {
    pub(crate) script: &'a ShellScript,
    pub(crate) text: &'a str,
    pub(crate) command: &'a Command,
    /// Training that was started before.
    pub(crate) launches: &'a [Launch],
}

impl Before<'_> {
    /// What the script writes into a file, where it has that in full. The last one counts.
    pub(crate) fn text_of(&self, name: &str) -> Option<String> {
        let start = self.command.span.start;
        let written = self.script.written.iter().rev().filter(|file| file.span.end <= start);
        let mut written = written.filter(|file| file.name.as_deref().is_none_or(|it| it == name));
        // A later one under a name that is not known may be the same.
        written.next().filter(|file| file.name.is_some())?.text.clone()
    }

    /// Whether a file that a launch names is made before.
    pub(crate) fn made(&self, name: &str) -> Made {
        let base = name.rsplit('/').next().unwrap_or(name);
        let is_launch =
            |command: &Command| self.launches.iter().any(|launch| launch.span() == command.span);
        let start = self.command.span.start;
        let earlier = self.script.commands.iter().filter(|command| command.span.end <= start);
        let mut made = match self.command.directory.is_known() {
            true => Made::No,
            false => Made::Perhaps,
        };
        for command in earlier.filter(|command| !is_launch(command)) {
            if is_harmless(command) {
                continue;
            }
            let statement = self.text.get(command.statement.start..command.statement.end);
            let in_words = || command.words.iter().filter_map(|word| word.text.as_deref());
            if statement.is_some_and(|text| text.contains(base))
                || in_words().any(|word| word.contains(base))
            {
                return Made::Named;
            }
            made = Made::Perhaps;
        }
        let written = self.script.written.iter().filter(|file| file.span.end <= start);
        for file in written {
            match file.name.as_deref() {
                Some(written) if written == name => return Made::Named,
                Some(_) => {}
                None => made = Made::Perhaps,
            }
        }
        made
    }
}

fn is_harmless(command: &Command) -> bool {
    let word = |index: usize| command.words.get(index).and_then(|word| word.text.as_deref());
    match word(0) {
        Some("source" | ".") => word(1).is_some_and(sets_variables),
        Some(name) => HARMLESS.contains(&name.rsplit('/').next().unwrap_or(name)),
        None => command.words.is_empty(),
    }
}
