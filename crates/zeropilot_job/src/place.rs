//! Where something is said: in the launch script, or in a file that it names.

use zeropilot_config::syntax::Span;

/// A place in one of the files of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file, as it is named; `None` for the launch script itself.
    pub file: Option<String>,
    /// Where in it.
    pub span: Span,
}

impl Place {
    /// In the launch script.
    pub fn here(span: Span) -> Self {
        Self { file: None, span }
    }

    /// In a file that is named.
    pub fn in_file(file: &str, span: Span) -> Self {
        Self { file: Some(file.to_owned()), span }
    }
}

/// A name whose value may be known only at run time, and where it stands.
#[derive(Debug, Clone)]
pub struct Named {
    /// The name, if it is known.
    pub text: Option<String>,
    /// Where it stands.
    pub place: Place,
}

/// A training argument with its value and where it is given.
#[derive(Debug, Clone)]
pub struct Said {
    /// The argument.
    pub name: String,
    /// Its value as a command line has it.
    pub value: String,
    /// Where it is given.
    pub place: Place,
}
