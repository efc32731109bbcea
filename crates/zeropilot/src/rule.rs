//! `zeropilot rule`: the manual pages of the rules, or a line for each.

use clap::Args;
use zeropilot_lint::{Page, RULES, Rule, nearest_code, rule};
use zeropilot_text::Language;
use zeropilot_view::{Format, Layout, listing, manual, talk};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;

/// The arguments of `zeropilot rule`.
#[derive(Debug, Args)]
pub(crate) struct RuleCommand {
    /// Codes or names of rules, such as B03 or micro-batch-zero; with only a letter such as B, or nothing, list one rule per line
    #[arg(value_name = "CODE")]
    pub(crate) codes: Vec<String>,
    /// Print every rule in full
    #[arg(long, conflicts_with = "codes")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

/// Shows the pages that were asked for.
pub(crate) fn run(command: &RuleCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    let (asked, unknown) = chosen(command);
    let is_json = layout.format == Format::Json;
    match asked {
        Asked::Lines(rules) if !is_json => output.result(&listing::table(&rules, language)),
        Asked::Pages(rules) if rules.is_empty() => {}
        Asked::Lines(rules) | Asked::Pages(rules) => output.result(&written(&rules, &layout)),
    }
    output.flush();
    for word in &unknown {
        output.say(&talk::unknown_rule(word, nearest_code(word), language));
    }
    if unknown.is_empty() { ExitStatus::Clean } else { ExitStatus::Failure }
}

/// What is shown of rules.
enum Asked {
    /// A line for each.
    Lines(Vec<&'static Rule>),
    /// Their pages.
    Pages(Vec<&'static Rule>),
}

/// The rules that exist, and the words that name none.
fn chosen(command: &RuleCommand) -> (Asked, Vec<&str>) {
    if command.all {
        return (Asked::Pages(RULES.to_vec()), Vec::new());
    }
    let groups: Option<Vec<char>> = command.codes.iter().map(|word| group(word)).collect();
    if let Some(letters) = groups {
        let is_in = |rule: &&&Rule| letters.is_empty() || letters.contains(&rule.group.letter());
        return (Asked::Lines(RULES.iter().filter(is_in).copied().collect()), Vec::new());
    }
    let mut rules = Vec::new();
    let mut unknown = Vec::new();
    for word in &command.codes {
        let by_name = || RULES.iter().find(|rule| rule.name.eq_ignore_ascii_case(word)).copied();
        match rule(word).or_else(by_name) {
            Some(rule) => rules.push(rule),
            None => unknown.push(word.as_str()),
        }
    }
    (Asked::Pages(rules), unknown)
}

/// The letter of a group that has rules.
fn group(word: &str) -> Option<char> {
    let mut letters = word.chars().map(|letter| letter.to_ascii_uppercase());
    let letter = letters.next().filter(|_| letters.next().is_none())?;
    RULES.iter().any(|rule| rule.group.letter() == letter).then_some(letter)
}

fn written(rules: &[&'static Rule], layout: &Layout) -> String {
    let pages: Vec<Page> = rules.iter().copied().map(Page::of).collect();
    if layout.format == Format::Json {
        return manual::json(&pages, layout.language);
    }
    let pages: Vec<String> = pages.iter().map(|page| manual::human(page, layout)).collect();
    pages.join("\n\n")
}
