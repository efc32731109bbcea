//! A whole job: the launch script, and what it says to the config it points to.
//!
//! [`read`] takes the text of a shell script and gives its [`Launch`]es: who starts how many ranks,
//! which config they read and which training arguments they get, from the command line, from YAML and
//! from the training script. What the texts do not settle, such as a variable from outside, stays
//! unknown and is listed; nothing is guessed. [`judge`] judges all of it together. Files are asked for
//! through a function, since this crate opens none.

mod arguments;
mod dictionary;
mod hostfile;
mod judgement;
mod launch;
mod launcher;
mod place;
mod python;
mod python_reader;
mod ranks;
mod shell;
mod slurm;
mod told;
mod training;
mod yaml;

use zeropilot_config::syntax::Span;

use crate::check::Settings;

pub use arguments::Given;
pub(crate) use hostfile::entries as hostfile_entries;
pub(crate) use judgement::{Findings, Judged, Training};
pub use judgement::{JobFile, JobReport, judge};
pub use launch::Launch;
pub use launcher::Launcher;
pub use place::{Named, Place, Said};
pub(crate) use python::{Call, PythonScript, Value};
pub use shell::{Assignment, Outside, Word};

/// Gives the text of a file that a script names; `None` if there is none.
pub type Files<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a launch script does.
#[derive(Debug)]
pub struct Job {
    /// The training runs it starts, in order.
    pub launches: Vec<Launch>,
    /// Variables that it sets for everything it runs.
    pub exported: Vec<Assignment>,
}

/// Reads a shell script.
pub fn read(text: &str, outside: &Outside, files: Files<'_>) -> Job {
    let mut known = slurm::variables(text);
    known.extend(outside.clone());
    let script = shell::read(text, &known);
    let launches = script
        .commands
        .iter()
        .filter_map(|command| launch::from_command(command, &script.exported, files))
        .collect();
    Job { launches, exported: script.exported }
}

impl Job {
    /// A variable that a launch finds set by its script, the one beside the command first; `None` for its value if
    /// that is not known.
    pub(crate) fn variable<'a>(&'a self, launch: &'a Launch, name: &str) -> Option<&'a Word> {
        let mut set = launch.variables.iter().rev().chain(self.exported.iter().rev());
        set.find(|set| set.name == name).map(|set| &set.value)
    }
}

impl Launch {
    /// What is known beside the config, on top of what the user said.
    pub fn settings(&self, said: &Settings) -> Settings {
        let mut settings = said.clone();
        settings.world_size = said.world_size.or(self.world);
        settings.front_end = said.front_end.or(self.given.front_end);
        self.given.add_to(&mut settings);
        settings.script.is_autotuned = self.launcher == Launcher::DeepSpeed
            && self.options.iter().any(|(name, _)| name == "autotuning");
        settings
    }

    /// The place of the command.
    pub fn span(&self) -> Span {
        self.span
    }
}
