//! A whole job: the launch script, and what it says to the config it points to.
//!
//! [`read`] takes the text of a shell script and gives its [`Launch`]es: who starts how many ranks,
//! which config they read and which training arguments they get. What the text does not settle, such
//! as a variable from outside, stays unknown and is listed; nothing is guessed. Files are asked for
//! through a function, since this crate opens none.

mod arguments;
mod hostfile;
mod launch;
mod shell;
mod yaml;

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::Span;

use crate::check::{Report, Settings, Verdict, World, WorldSource};
use crate::diagnostic::Diagnostic;
use crate::rules::launch::JOB_RULES;

pub use arguments::Given;
pub use launch::{Launch, Launcher};
pub use shell::{Assignment, Word};

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
pub fn read(text: &str, files: Files<'_>) -> Job {
    let script = shell::read(text);
    let launches =
        script.commands.iter().filter_map(|command| launch::from_command(command, files)).collect();
    Job { launches, exported: script.exported }
}

/// What the rules find in a launch script itself. What they find in the config it points to is for
/// [`crate::check`] with [`Launch::settings`].
pub fn check(text: &str, job: &Job, files: Files<'_>) -> Report {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    for rule in JOB_RULES {
        rule(text, job, files, &mut diagnostics);
    }
    diagnostics.sort_by_key(|found| (found.span.start, found.rule.code));
    let launch = job.launches.first();
    Report {
        verdict: Verdict::Accept,
        resolved: None,
        diagnostics,
        mended: Vec::new(),
        pending: Vec::new(),
        version: EngineVersion::NEWEST,
        front_end: launch.and_then(|launch| launch.given.front_end).unwrap_or(FrontEnd::DeepSpeed),
        front_end_guessed: false,
        world: match launch.and_then(|launch| launch.world) {
            Some(size) => World { size, source: WorldSource::Given },
            None => World { size: 1, source: WorldSource::Assumed },
        },
    }
}

impl Launch {
    /// What is known beside the config, on top of what the user said.
    pub fn settings(&self, said: &Settings) -> Settings {
        let mut settings = said.clone();
        settings.world_size = said.world_size.or(self.world);
        settings.front_end = said.front_end.or(self.given.front_end);
        self.given.add_to(&mut settings);
        settings
    }

    /// The place of the command.
    pub fn span(&self) -> Span {
        self.span
    }
}
