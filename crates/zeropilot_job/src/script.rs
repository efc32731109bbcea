//! Launch scripts: the runs they start and the variables they set.

use crate::launch::{self, Launch};
use crate::made::Before;
use crate::shell::{self, Assignment, Outside, Word};
use crate::slurm;
use crate::trl;
use crate::unread;
use zeropilot_config::syntax::Span;

/// Gives the text of a file that a script names; `None` if there is none.
pub type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a launch script does.
#[derive(Debug)]
pub struct LaunchScript {
    /// The training runs it starts, in order.
    pub launches: Vec<Launch>,
    /// Frameworks that it starts otherwise, which zeropilot knows by name and does not read.
    pub unread: Vec<&'static str>,
    /// Variables that it sets for everything it runs.
    pub exported: Vec<Assignment>,
}

/// Reads a shell script.
pub fn read(text: &str, outside: &Outside, files: Files<'_>) -> LaunchScript {
    let mut known = slurm::variables(text);
    known.extend(outside.clone());
    let script = shell::read(text, &known);
    let mut launches: Vec<Launch> = Vec::new();
    let mut unread = Vec::new();
    for command in &script.commands {
        let before = Before { script: &script, text, command, launches: &launches };
        let known = |name: &str| {
            before.text_of(name).or_else(|| files(name)).or_else(|| trl::shipped(name))
        };
        if let Some(mut launch) = launch::from_command(command, &script.exported, &known) {
            let config = launch.given.config.as_ref().and_then(|config| config.text.as_deref());
            launch.made = config.map(|name| before.made(name));
            launch.config_text = config.and_then(|name| before.text_of(name));
            launches.push(launch);
        } else {
            unread.extend(unread::framework(&command.words, &known));
        }
    }
    LaunchScript { launches, unread, exported: script.exported }
}

impl LaunchScript {
    /// A variable that a launch finds set by its script, the one beside the command first; `None` for its value if
    /// that is not known.
    pub fn variable<'a>(&'a self, launch: &'a Launch, name: &str) -> Option<&'a Word> {
        let mut set = launch.variables.iter().rev().chain(self.exported.iter().rev());
        set.find(|set| set.name == name).map(|set| &set.value)
    }
}

impl Launch {
    /// The place of the command.
    pub fn span(&self) -> Span {
        self.span
    }
}
