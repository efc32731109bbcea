//! `zeropilot rule`: the manual pages of the rules.

use clap::Args;
use zeropilot_lint::{Page, RULES, Rule, nearest_code, rule};
use zeropilot_text::Language;
use zeropilot_view::{Format, Layout, manual, talk};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;

/// The arguments of `zeropilot rule`.
#[derive(Debug, Args)]
pub(crate) struct RuleCommand {
    /// Codes of rules, such as B03
    #[arg(required_unless_present = "all", value_name = "CODE")]
    pub(crate) codes: Vec<String>,
    /// Every rule there is
    #[arg(long, conflicts_with = "codes")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) format: FormatOptions,
}

/// Shows the pages that were asked for.
pub(crate) fn run(command: &RuleCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    let (rules, unknown) = chosen(command);
    if !rules.is_empty() {
        output.result(&written(&rules, &layout));
    }
    output.flush();
    for word in &unknown {
        output.say(&talk::unknown_rule(word, nearest_code(word), language));
    }
    if unknown.is_empty() { ExitStatus::Clean } else { ExitStatus::Failure }
}

/// The rules that exist, and the words that name none.
fn chosen(command: &RuleCommand) -> (Vec<&'static Rule>, Vec<&str>) {
    if command.all {
        return (RULES.to_vec(), Vec::new());
    }
    let mut rules = Vec::new();
    let mut unknown = Vec::new();
    for word in &command.codes {
        match rule(word) {
            Some(rule) => rules.push(rule),
            None => unknown.push(word.as_str()),
        }
    }
    (rules, unknown)
}

fn written(rules: &[&'static Rule], layout: &Layout) -> String {
    let pages: Vec<Page> = rules.iter().copied().map(Page::of).collect();
    if layout.format == Format::Json {
        return manual::json(&pages, layout.language);
    }
    let pages: Vec<String> = pages.iter().map(|page| manual::human(page, layout)).collect();
    pages.join("\n\n")
}
