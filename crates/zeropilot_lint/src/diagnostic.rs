//! A finding: which rule, where, what is to be said, and how to put it right.

use zeropilot_config::problem::KeyPath;
use zeropilot_config::syntax::Span;

use crate::argument::Argument;
use crate::edit::Edit;
use crate::rule::{Rule, Severity, Wording};
use zeropilot_text::{Language, Text};

/// A finding.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// The rule.
    pub rule: &'static Rule,
    /// How bad it is told to be.
    pub severity: Severity,
    /// The key it is about; empty for the file as a whole.
    pub path: KeyPath,
    /// The place in the file.
    pub span: Span,
    /// Other places that matter.
    pub related: Vec<Related>,
    /// How to put it right, where that can be said as an edit.
    pub fix: Option<Fix>,
    wording: &'static Wording,
    arguments: Vec<(&'static str, Argument)>,
    /// How bad it is, where the project tells it otherwise.
    unrated: Option<Severity>,
}

/// Another place that matters.
#[derive(Debug, Clone)]
pub struct Related {
    /// The place.
    pub span: Span,
    /// What stands there.
    pub label: Text,
}

/// Whether a fix may be applied without being read first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Safety {
    /// The run does what it would do without the fault.
    Safe,
    /// A guess at what was meant: it changes what the run does.
    Unsafe,
}

impl Safety {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
        }
    }
}

/// Edits that put a finding right and leave the rest of the file as it is, byte for byte.
#[derive(Debug, Clone)]
pub struct Fix {
    /// What the edits do; a template over the finding's arguments.
    pub title: Text,
    /// Whether it may be applied unseen.
    pub safety: Safety,
    /// In the order of the text, without overlaps.
    pub edits: Vec<Edit>,
}

impl Diagnostic {
    /// A finding with the rule's severity.
    pub fn new(
        rule: &'static Rule,
        wording: &'static Wording,
        path: impl Into<KeyPath>,
        span: Span,
    ) -> Self {
        let path = path.into();
        let arguments = vec![
            ("key", Argument::Plain(path.key().to_owned())),
            ("path", Argument::Plain(path.to_string())),
            ("section", Argument::Plain(path.parent().to_string())),
        ];
        Self {
            rule,
            severity: rule.severity,
            path,
            span,
            related: Vec::new(),
            fix: None,
            wording,
            arguments,
            unrated: None,
        }
    }

    /// Names a piece of its sentences.
    #[must_use]
    pub fn with(mut self, name: &'static str, argument: impl Into<Argument>) -> Self {
        self.arguments.push((name, argument.into()));
        self
    }

    /// With another severity.
    #[must_use]
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Tells it with the severity that a project wants; what it does to the run stays.
    #[cfg(feature = "project")]
    pub(crate) fn rate(&mut self, severity: Severity) {
        self.unrated.get_or_insert(self.severity);
        self.severity = severity;
    }

    /// How bad it is for the run, however it is told.
    pub fn effect(&self) -> Severity {
        self.unrated.unwrap_or(self.severity)
    }

    /// With another place that matters.
    #[must_use]
    pub fn related(mut self, span: Span, label: Text) -> Self {
        self.related.push(Related { span, label });
        self
    }

    /// With a fix, if there is one.
    #[must_use]
    pub fn fix(mut self, fix: Option<Fix>) -> Self {
        self.fix = fix;
        self
    }

    /// The training argument it is about, where it comes from one.
    pub fn argument(&self) -> Option<&str> {
        let named = self.arguments.iter().find(|(name, _)| *name == "argument");
        match named {
            Some((_, Argument::Plain(argument))) => Some(argument),
            _ => None,
        }
    }

    /// Whether both are worded by the same sentences.
    pub(crate) fn is_worded_like(&self, other: &Self) -> bool {
        std::ptr::eq(self.wording, other.wording)
    }

    /// What is wrong.
    pub fn message(&self, language: Language) -> String {
        self.wording.message.fill(language, &self.arguments)
    }

    /// Why it matters.
    pub fn why(&self, language: Language) -> String {
        self.wording.why.fill(language, &self.arguments)
    }

    /// What to do.
    pub fn help(&self, language: Language) -> String {
        self.wording.help.fill(language, &self.arguments)
    }

    /// What the fix does.
    pub fn fix_title(&self, language: Language) -> Option<String> {
        Some(self.fix.as_ref()?.title.fill(language, &self.arguments))
    }
}

impl Fix {
    /// A fix that may be applied unseen.
    pub fn safe(title: Text, edits: Vec<Edit>) -> Self {
        Self { title, safety: Safety::Safe, edits }
    }

    /// A guess.
    pub fn guess(title: Text, edits: Vec<Edit>) -> Self {
        Self { title, safety: Safety::Unsafe, edits }
    }
}
