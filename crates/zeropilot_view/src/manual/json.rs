//! Pages for programs. The shape is a contract: keys are added, never changed.

use serde::Serialize;
use zeropilot_lint::{Case, Diagnostic, Example, Page};
use zeropilot_text::Language;

use super::group_name;
use crate::json::written;

#[derive(Serialize)]
struct Entry {
    code: &'static str,
    name: &'static str,
    group: &'static str,
    severity: &'static str,
    summary: &'static str,
    explanations: Vec<Explanation>,
    fix: Vec<&'static str>,
    versions: Vec<&'static str>,
    front_ends: Vec<&'static str>,
    sources: &'static [&'static str],
    bad: Vec<Bad>,
    good: Vec<Config>,
}

/// One way the rule words itself.
#[derive(Serialize)]
struct Explanation {
    severity: &'static str,
    message: String,
    why: String,
    help: String,
    fix: Option<Fix>,
}

#[derive(Serialize)]
struct Fix {
    title: String,
    safety: &'static str,
}

#[derive(Serialize)]
struct Bad {
    #[serde(flatten)]
    config: Config,
    findings: Vec<Explanation>,
}

#[derive(Serialize)]
struct Config {
    config: &'static str,
    front_end: &'static str,
    world_size: Option<usize>,
    deepspeed_version: Option<&'static str>,
}

/// One array, each page on lines of its own.
pub(crate) fn pages(pages: &[Page], language: Language) -> String {
    let entries: Vec<String> = pages.iter().map(|page| written(&entry(page, language))).collect();
    format!("[{}]\n", entries.join(",\n"))
}

fn entry(page: &Page, language: Language) -> Entry {
    let rule = page.rule;
    Entry {
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

fn explanation(found: &Diagnostic, language: Language) -> Explanation {
    Explanation {
        severity: found.severity.name(),
        message: found.message(language),
        why: found.why(language),
        help: found.help(language),
        fix: found.fix.as_ref().map(|fix| Fix {
            title: found.fix_title(language).unwrap_or_default(),
            safety: fix.safety.name(),
        }),
    }
}

fn bad(case: &Case, language: Language) -> Bad {
    let findings = case.findings.iter().map(|found| explanation(found, language)).collect();
    Bad { config: config(case.example), findings }
}

fn config(example: &Example) -> Config {
    Config {
        config: example.config,
        front_end: example.front_end.name(),
        world_size: example.world_size,
        deepspeed_version: example.version,
    }
}
