//! Something a machine lacks.

use zeropilot_lint::{Argument, Severity, Wording};
use zeropilot_text::{Language, Text};

/// What is missing or wrong, why it matters, what to do.
#[derive(Debug, Clone)]
pub struct Finding {
    /// A stable name.
    pub name: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// A command that puts it right, where there is one.
    pub command: Option<&'static str>,
    wording: &'static Wording,
    arguments: Vec<(&'static str, Argument)>,
}

impl Finding {
    pub(crate) fn new(name: &'static str, severity: Severity, wording: &'static Wording) -> Self {
        Self { name, severity, command: None, wording, arguments: Vec::new() }
    }

    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, argument: impl Into<Argument>) -> Self {
        self.arguments.push((name, argument.into()));
        self
    }

    #[must_use]
    pub(crate) fn command(mut self, command: &'static str) -> Self {
        self.command = Some(command);
        self
    }

    fn fill(&self, text: Text, language: Language) -> String {
        text.fill(language, &self.arguments)
    }

    /// What is missing or wrong.
    pub fn message(&self, language: Language) -> String {
        self.fill(self.wording.message, language)
    }

    /// Why it matters.
    pub fn why(&self, language: Language) -> String {
        self.fill(self.wording.why, language)
    }

    /// What to do.
    pub fn help(&self, language: Language) -> String {
        self.fill(self.wording.help, language)
    }
}
