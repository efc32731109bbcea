//! Known defects of DeepSpeed and what runs on it, by version: `knowledge/advisories`.
//!
//! An [`Advisory`] says which versions have a defect and what must hold for a job to meet it, as data. Rule V11
//! reports those that apply to a config; [`met_by`] lists what the installed versions have.

mod condition;

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_config::packages::{Packages, Release};
use zeropilot_text::Text;

use crate::rule::Severity;

pub(crate) use condition::Facts;
pub use condition::{Answer, Condition, Test};

/// A defect that some versions have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Advisory {
    /// The package that was fixed, and the pull request that fixed the defect or brought it: `deepspeed-7707`.
    pub id: String,
    title: Words,
    /// What it does to a run.
    pub kind: Kind,
    what: Words,
    workaround: Words,
    /// The versions that have it; all of them must be installed.
    pub affects: Vec<Affected>,
    /// What must hold for a job to meet it; all of it.
    pub when: Vec<Condition>,
    /// Where it is described and fixed: `owner/repository#number`.
    pub evidence: Vec<String>,
    /// The rule that reports it already.
    #[serde(default)]
    pub rule: Option<String>,
    /// The engines on which a test shows that one has it and the other has not.
    #[serde(default)]
    pub reproduced: Option<Reproduced>,
}

/// What a defect does to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Training goes on with wrong numbers, and nothing is said.
    SilentlyWrong,
    /// An error ends the run.
    Crash,
    /// The run stops and waits.
    Hang,
    /// The run needs more memory.
    Memory,
    /// The run takes longer.
    Slower,
}

/// Versions of a package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Affected {
    /// The package.
    pub package: String,
    /// The first version that has the defect; all earlier ones have it too if it is missing.
    #[serde(default)]
    pub from: Option<String>,
    /// The first version without it; all later ones have it if it is missing.
    #[serde(default)]
    pub fixed: Option<String>,
}

/// Engines that show a defect and its end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reproduced {
    /// The engine that has it.
    pub affected: String,
    /// The engine that has it no more.
    pub fixed: String,
}

/// A text in both languages.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    en: String,
    zh: String,
}

/// The rule that reports advisories.
pub const RULE: &str = "V11";

static ADVISORIES: LazyLock<Vec<Advisory>> = LazyLock::new(|| {
    // The file is part of the program and a test reads it.
    serde_json::from_str(const { zeropilot_knowledge::text("advisories/advisories.json") })
        .unwrap_or_else(|error| panic!("knowledge/advisories/advisories.json: {error}"))
});

/// All advisories: by package, then by number.
pub fn advisories() -> &'static [Advisory] {
    &ADVISORIES
}

/// The advisory with this name.
pub fn advisory(id: &str) -> Option<&'static Advisory> {
    advisories().iter().find(|advisory| advisory.id.eq_ignore_ascii_case(id))
}

/// The advisories on these versions that no rule reports, and whether it is certain that the versions have the defect.
pub fn met_by(packages: &Packages) -> impl Iterator<Item = (&'static Advisory, Answer)> {
    let unreported = advisories().iter().filter(|advisory| advisory.rule.is_none());
    unreported
        .map(|advisory| (advisory, advisory.is_in(packages)))
        .filter(|(_, answer)| *answer != Answer::No)
}

impl Advisory {
    /// What goes wrong, in a line.
    pub fn title(&'static self) -> Text {
        self.title.text()
    }

    /// What goes wrong, in full.
    pub fn what(&'static self) -> Text {
        self.what.text()
    }

    /// What to do where the fix cannot be installed.
    pub fn workaround(&'static self) -> Text {
        self.workaround.text()
    }

    /// Whether these versions have the defect. A version that is not known is not compared.
    pub fn is_in(&self, packages: &Packages) -> Answer {
        let one = |affected: &Affected| match packages.version(&affected.package) {
            Some(version) => affected.has(version),
            None => Answer::No,
        };
        self.affects.iter().map(one).fold(Answer::Yes, Answer::and)
    }

    /// The first release without it of the package that was fixed.
    pub fn fixed(&self) -> Option<(&str, &str)> {
        self.affects
            .iter()
            .find_map(|affected| Some((&*affected.package, affected.fixed.as_deref()?)))
    }

    /// How bad it is for a job that meets it.
    pub fn severity(&self) -> Severity {
        match self.kind {
            Kind::SilentlyWrong | Kind::Crash | Kind::Hang => Severity::Warning,
            Kind::Memory | Kind::Slower => Severity::Note,
        }
    }
}

impl Affected {
    fn has(&self, version: &str) -> Answer {
        let Some(version) = Release::parse(version) else { return Answer::Unknown };
        let before = |limit: &Option<String>| {
            let release = limit.as_deref().and_then(Release::parse)?;
            Some(version.is_before(&release))
        };
        let is_new_enough = match before(&self.from) {
            None => Answer::Yes,
            Some(before) => Answer::from(before.map(|before| !before)),
        };
        let is_old_enough = match before(&self.fixed) {
            None => Answer::Yes,
            Some(before) => Answer::from(before),
        };
        is_new_enough.and(is_old_enough)
    }
}

impl Kind {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::SilentlyWrong => "silently-wrong",
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Memory => "memory",
            Self::Slower => "slower",
        }
    }

    /// Its name for people.
    pub fn words(self) -> Text {
        match self {
            Self::SilentlyWrong => Text::new("silently wrong", "结果错误且不报错"),
            Self::Crash => Text::new("crash", "报错退出"),
            Self::Hang => Text::new("hang", "卡住"),
            Self::Memory => Text::new("more GPU memory", "多占显存"),
            Self::Slower => Text::new("slower", "变慢"),
        }
    }
}

impl Words {
    /// As a text.
    pub fn text(&'static self) -> Text {
        Text::new(&self.en, &self.zh)
    }
}

#[cfg(test)]
mod tests;
