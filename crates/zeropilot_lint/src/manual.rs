//! The manual page of a rule, found by trying: what its examples yield, for which engines and
//! front ends they yield it, and how safe its fixes are.
//!
//! Nothing here is written by hand, so a page cannot say what the rule does not do.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;

use crate::check::check;
use crate::diagnostic::{Diagnostic, Safety};
use crate::report::Report;
use crate::rule::{Example, Rule};
use crate::selection::Selection;
use crate::settings::Settings;

/// A rule with everything its examples show.
#[derive(Debug)]
pub struct Page {
    /// The rule.
    pub rule: &'static Rule,
    /// Its bad examples.
    pub cases: Vec<Case>,
    /// The engines for which at least one of its examples yields it, oldest first.
    pub versions: Vec<EngineVersion>,
    /// The front ends for which at least one of its examples yields it.
    pub front_ends: Vec<FrontEnd>,
}

/// A bad example and what is found in it.
#[derive(Debug)]
pub struct Case {
    /// The example.
    pub example: &'static Example,
    /// What the rule finds in it.
    pub findings: Vec<Diagnostic>,
}

impl Page {
    /// Writes the page by running the rule's examples.
    pub fn of(rule: &'static Rule) -> Self {
        let cases = rule
            .examples
            .iter()
            .map(|example| {
                let report = example.judge();
                let findings = report.diagnostics.into_iter().filter(|found| found.rule == rule);
                Case { example, findings: findings.collect() }
            })
            .collect();
        let versions = EngineVersion::all()
            .filter(|version| yields(rule, |settings| settings.version = *version))
            .collect();
        let front_ends = FrontEnd::ALL
            .into_iter()
            .filter(|front_end| yields(rule, |settings| settings.front_end = Some(*front_end)))
            .collect();
        Self { rule, cases, versions, front_ends }
    }

    /// How safe the fixes are that it offers, each once.
    pub fn safeties(&self) -> Vec<Safety> {
        let mut safeties = Vec::new();
        let findings = self.cases.iter().flat_map(|case| &case.findings);
        for safety in findings.filter_map(|found| found.fix.as_ref()).map(|fix| fix.safety) {
            if !safeties.contains(&safety) {
                safeties.push(safety);
            }
        }
        safeties
    }

    /// A finding for each way the rule words itself, in the order of its examples.
    pub fn wordings(&self) -> Vec<&Diagnostic> {
        let mut shown: Vec<&Diagnostic> = Vec::new();
        for found in self.cases.iter().flat_map(|case| &case.findings) {
            if !shown.iter().any(|earlier| earlier.is_worded_like(found)) {
                shown.push(found);
            }
        }
        shown
    }
}

/// Whether one of the rule's examples yields it, under surroundings changed by `change`.
fn yields(rule: &'static Rule, change: impl Fn(&mut Settings)) -> bool {
    rule.examples.iter().any(|example| {
        let mut settings = example.settings();
        change(&mut settings);
        let report = example.judge_with(&settings);
        report.diagnostics.iter().any(|found| found.rule == rule)
    })
}

impl Example {
    /// Everything beside the file.
    pub fn settings(&self) -> Settings {
        let version = self.version.and_then(|version| EngineVersion::nearest(version).ok());
        Settings {
            version: version.unwrap_or(EngineVersion::NEWEST),
            world_size: self.world_size,
            front_end: (!self.is_reader_guessed).then_some(self.front_end),
            arguments: (self.arguments)(),
            model: (self.model)(),
            script: (self.script)(),
            packages: self.packages.iter().copied().collect(),
            selection: Selection::default(),
        }
    }

    /// What is found in it.
    pub fn judge(&self) -> Report {
        self.judge_with(&self.settings())
    }

    fn judge_with(&self, settings: &Settings) -> Report {
        #[cfg(feature = "job")]
        if self.is_job {
            let find = |name: &str| {
                let file = self.files.iter().find(|(known, _)| *known == name);
                file.map(|(_, text)| (*text).to_owned())
            };
            let said = Settings { front_end: None, world_size: None, ..settings.clone() };
            return crate::job::judge(
                self.config,
                &zeropilot_job::Outside::default(),
                &said,
                &find,
            )
            .merged();
        }
        check(self.config.as_bytes(), settings)
    }
}
