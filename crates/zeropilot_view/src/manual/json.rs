//! Pages for programs. The shape is a contract: keys are added, never changed.

use serde::Serialize;
use zeropilot_lint::{Case, Diagnostic, Example, Page};
use zeropilot_text::Language;

use super::group_name;
use crate::json::written;

/// A page of the rule book.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RulePage {
    code: &'static str,
    name: &'static str,
    group: &'static str,
    severity: &'static str,
    summary: &'static str,
    explanations: Vec<RuleWords>,
    fix: Vec<&'static str>,
    versions: Vec<&'static str>,
    front_ends: Vec<&'static str>,
    sources: &'static [&'static str],
    bad: Vec<BadExample>,
    good: Vec<GoodExample>,
}

/// One way the rule words itself.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RuleWords {
    severity: &'static str,
    message: String,
    why: String,
    help: String,
    fix: Option<RuleFix>,
}

/// What a fix does, and whether it is safe.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RuleFix {
    title: String,
    safety: &'static str,
}

/// A config in which the rule finds something.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct BadExample {
    #[serde(flatten)]
    config: GoodExample,
    findings: Vec<RuleWords>,
}

/// A config, and what it is judged for.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct GoodExample {
    config: &'static str,
    front_end: &'static str,
    world_size: Option<usize>,
    deepspeed_version: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<ExampleFile>,
}

/// A file that a launch script names.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ExampleFile {
    name: &'static str,
    text: &'static str,
}

/// One array, each page on lines of its own.
pub(crate) fn pages(pages: &[Page], language: Language) -> String {
    let entries: Vec<String> = pages.iter().map(|page| written(&entry(page, language))).collect();
    format!("[{}]\n", entries.join(",\n"))
}

fn entry(page: &Page, language: Language) -> RulePage {
    let rule = page.rule;
    RulePage {
        code: rule.code,
        name: rule.name,
        group: group_name(rule.group).get(language),
        severity: rule.severity.name(),
        summary: rule.summary.get(language),
        explanations: page
            .wordings()
            .into_iter()
            .map(|found| explanation(found, language))
            .collect(),
        fix: page.safeties().into_iter().map(zeropilot_lint::Safety::name).collect(),
        versions: page.versions.iter().map(|version| version.name()).collect(),
        front_ends: page.front_ends.iter().map(|front_end| front_end.name()).collect(),
        sources: rule.sources,
        bad: page.cases.iter().map(|case| bad(case, language)).collect(),
        good: rule.good.iter().map(config).collect(),
    }
}

fn explanation(found: &Diagnostic, language: Language) -> RuleWords {
    RuleWords {
        severity: found.severity.name(),
        message: found.message(language),
        why: found.why(language),
        help: found.help(language),
        fix: found.fix.as_ref().map(|fix| RuleFix {
            title: found.fix_title(language).unwrap_or_default(),
            safety: fix.safety.name(),
        }),
    }
}

fn bad(case: &Case, language: Language) -> BadExample {
    let findings = case.findings.iter().map(|found| explanation(found, language)).collect();
    BadExample { config: config(case.example), findings }
}

fn config(example: &Example) -> GoodExample {
    GoodExample {
        config: example.config,
        front_end: example.front_end.name(),
        world_size: example.world_size,
        deepspeed_version: example.version,
        files: example.files.iter().map(|(name, text)| ExampleFile { name, text }).collect(),
    }
}
