//! Where the commands of a script run, as far as `cd`, `pushd` and `popd` settle it.

use std::path::Path;

/// A directory, from where the script starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directory(Option<String>);

impl Directory {
    /// Whether it is known.
    pub(crate) fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// A name in it; as it is written where the directory is not known.
    pub(crate) fn join(&self, name: &str) -> String {
        match self.0.as_deref() {
            Some("") | None => name.to_owned(),
            Some(directory) => joined(directory, name),
        }
    }
}

/// The directory a script is in, and those that it pushed.
#[derive(Debug, Clone)]
pub(crate) struct Directories {
    current: Option<String>,
    pushed: Vec<Option<String>>,
    /// How often it was changed.
    changes: usize,
}

impl Default for Directories {
    fn default() -> Self {
        Self { current: Some(String::new()), pushed: Vec::new(), changes: 0 }
    }
}

impl Directories {
    pub(crate) fn current(&self) -> Directory {
        Directory(self.current.clone())
    }

    /// Goes where a command goes, if it goes anywhere.
    pub(crate) fn follow(&mut self, words: &[Option<&str>]) {
        let Some((Some(name), rest)) = words.split_first() else { return };
        let mut rest = rest.iter().filter(|word| !matches!(word, Some("-P" | "-L" | "--")));
        match *name {
            "cd" => self.change(rest.next().copied().flatten()),
            "pushd" => {
                self.pushed.push(self.current.clone());
                self.change(rest.next().copied().flatten());
            }
            "popd" => {
                self.current = self.pushed.pop().flatten();
                self.changes += 1;
            }
            // What a sourced file does is not looked at; those that only set variables stay.
            "source" | "." if !rest.next().copied().flatten().is_some_and(sets_variables) => {
                self.change(None);
            }
            _ => {}
        }
    }

    /// Changes to a directory; `None` if only the run knows it.
    pub(crate) fn change(&mut self, to: Option<&str>) {
        self.changes += 1;
        let to = to.filter(|to| !to.is_empty() && *to != "-" && !to.starts_with('~'));
        self.current = match (self.current.as_deref(), to) {
            (_, Some(to)) if to.starts_with('/') => Some(joined("", to)),
            (Some(from), Some(to)) => Some(joined(from, to)),
            _ => None,
        };
    }

    /// Leaves a part of the script that need not run, or that runs in a shell of its own.
    pub(crate) fn leave(&mut self, before: Self, kind: &str) {
        let is_changed = match kind {
            "subshell" => false,
            // It is called somewhere below; the first change is its own beginning.
            "function_definition" => self.changes > before.changes + 1,
            _ => self.current != before.current || self.pushed != before.pushed,
        };
        *self = before;
        if is_changed {
            self.current = None;
        }
    }
}

/// Whether a file that is sourced is one of those that set variables and stay where they are.
pub(crate) fn sets_variables(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    matches!(name, "activate" | ".bashrc" | ".bash_profile" | ".profile" | "conda.sh" | ".env")
}

/// Where the script itself is, if that is what a command substitution asks for. `script` is the script's own name.
pub(crate) fn script_directory(substitution: &str, script: &str) -> Option<String> {
    let plain: String = substitution.chars().filter(|it| !matches!(it, '"' | '\'')).collect();
    let plain = plain
        .replace("${BASH_SOURCE[0]}", "$0")
        .replace("${BASH_SOURCE}", "$0")
        .replace("$BASH_SOURCE", "$0")
        .replace("${0}", "$0")
        .replace("$(readlink -f $0)", "$0")
        .replace("$(realpath $0)", "$0")
        .replace("-- ", "");
    let words: Vec<&str> = plain.split_whitespace().collect();
    let plain = words.join(" ").replace("$( ", "$(").replace(" )", ")").replace(" ;", ";");
    // `cd $(dirname $0)/.. && pwd` goes on from there.
    let (plain, from_there) = match plain.split_once("$(dirname $0)/") {
        Some((before, after)) => {
            let end = after.find([' ', ';', ')'])?;
            let (path, after) = after.split_at(end);
            (format!("{before}$(dirname $0){after}"), path.to_owned())
        }
        None => (plain, String::new()),
    };
    let asks = matches!(
        plain.as_str(),
        "$(dirname $0)"
            | "$(cd $(dirname $0) && pwd)"
            | "$(cd $(dirname $0); pwd)"
            | "$(cd $(dirname $0) && pwd -P)"
            | "$(cd $(dirname $0) &> /dev/null && pwd)"
            | "$(cd $(dirname $0) >& /dev/null && pwd)"
            | "$(cd $(dirname $0) && pwd -L)"
            | "$(cd $(dirname $0) >/dev/null 2>&1 && pwd)"
    );
    let parent = Path::new(script).parent()?.to_str()?;
    let is_plain = !from_there.contains(['$', '`', '*', '?', '~']);
    let here = match joined(parent, &from_there) {
        here if here.is_empty() => ".".to_owned(),
        here => here,
    };
    (asks && is_plain).then_some(here)
}

/// A path below a directory, without `.` and `..` where they can be left out.
fn joined(directory: &str, path: &str) -> String {
    let whole = match directory {
        "" => path.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        directory => format!("{directory}/{path}"),
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if whole.starts_with('/') { format!("/{joined}") } else { joined }
}
