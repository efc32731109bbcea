//! `zeropilot rule`: the manual pages of the rules.

use zeropilot_lint::{Language, Page, RULES, Rule, nearest_code, rule};
use zeropilot_view::{Format, Layout, manual, talk};

use crate::cli::{GlobalOptions, RuleCommand, RuleFormat};
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::output::Output;

/// Shows the pages that were asked for.
pub(crate) fn run(command: &RuleCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let is_human = command.output_format == RuleFormat::Human;
    let format = if is_human { Format::Human } else { Format::Json };
    let layout = layout(format, global, language);
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
