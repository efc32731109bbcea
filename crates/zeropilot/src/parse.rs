//! From words on a command line to a command.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};
use zeropilot_text::Language;

use crate::cli::Cli;
use crate::help_zh;

/// Parts of a request that a command has no use for: a plan chooses its own accumulation.
const UNUSED: [(&str, &[&str]); 3] =
    [("memory", &["network", "nvme"]), ("plan", &["grad_accum"]), ("simulate", &["rank"])];

/// What a plan chooses where it is not given, and a prediction does not.
const CHOSEN: [(&str, &str); 2] = [
    (
        "micro_batch",
        "Set the micro-batch size: sequences per GPU and forward pass [default: chosen by zeropilot]",
    ),
    (
        "grad_checkpointing",
        "Recompute every layer in the backward pass (gradient checkpointing) [default: chosen by zeropilot]",
    ),
];

/// Reads the arguments, with help in the given language.
pub(crate) fn parse(arguments: Vec<OsString>, language: Language) -> Result<Cli, clap::Error> {
    let mut definition = definition(language);
    let matches =
        definition.try_get_matches_from_mut(offload_alone(arguments)).map_err(hyphenated)?;
    if let Some((verb, given)) = matches.subcommand()
        && let Some(verb) = definition.find_subcommand(verb)
    {
        refuse_unused(verb, given)?;
    }
    Cli::from_arg_matches(&matches)
}

/// All verbs and options, with their help in a language.
pub(crate) fn definition(language: Language) -> Command {
    let command = Cli::command().mut_subcommands(|verb| {
        let (unused, is_plan) = (unused(verb.get_name()), verb.get_name() == "plan");
        verb.mut_args(|argument| {
            let id = argument.get_id().as_str();
            let is_unused = unused.contains(&id);
            let chosen = CHOSEN.iter().find(|(chosen, _)| is_plan && *chosen == id);
            let argument = match chosen {
                Some((_, help)) => argument.help(*help),
                None => argument,
            };
            spelled(argument).hide(is_unused)
        })
    });
    match language {
        Language::English => command,
        Language::Chinese => help_zh::translate(command),
    }
}

/// The error with the option that it suggests spelled as in the help.
fn hyphenated(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::SuggestedArg) {
        let name = name.replace('_', "-");
        error.insert(ContextKind::SuggestedArg, ContextValue::String(name));
    }
    error
}

fn unused(verb: &str) -> &'static [&'static str] {
    UNUSED.iter().find(|(of, _)| *of == verb).map_or(&[], |(_, options)| options)
}

fn refuse_unused(verb: &Command, given: &ArgMatches) -> Result<(), clap::Error> {
    let is_given = |id: &&&str| given.value_source(id) == Some(ValueSource::CommandLine);
    let Some(id) = unused(verb.get_name()).iter().find(is_given) else { return Ok(()) };
    let mut error = clap::Error::new(ErrorKind::UnknownArgument).with_cmd(verb);
    let name = format!("--{}", id.replace('_', "-"));
    error.insert(ContextKind::InvalidArg, ContextValue::String(name));
    Err(error)
}

/// With underscores as Python spells options, and with numbers below zero as wrong values, not as unknown options.
fn spelled(argument: Arg) -> Arg {
    if argument.is_positional() {
        return argument;
    }
    let names = argument.get_long_and_visible_aliases().unwrap_or_default().into_iter();
    let names = names.chain(argument.get_aliases().unwrap_or_default());
    let underscored: Vec<String> =
        names.filter(|name| name.contains('-')).map(|name| name.replace('-', "_")).collect();
    let takes_values = argument.get_action().takes_values();
    argument.aliases(underscored).allow_negative_numbers(takes_values)
}

/// `--offload` alone means all, also in front of a model or a preset.
fn offload_alone(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let end = arguments.iter().position(|word| word == "--").unwrap_or(arguments.len());
    for index in 0..end {
        let next = arguments.get(index + 1).map(OsString::as_os_str).and_then(OsStr::to_str);
        let is_name = |word: &str| !word.starts_with('-') && !word.chars().all(char::is_alphabetic);
        if arguments[index] == "--offload" && next.is_some_and(is_name) {
            arguments[index] = "--offload=all".into();
        }
    }
    arguments
}

#[cfg(test)]
mod tests {
    use zeropilot_ask::Training;

    use super::*;

    fn read(line: &str) -> Result<Cli, clap::Error> {
        parse(line.split_whitespace().map(Into::into).collect(), Language::English)
    }

    #[test]
    fn the_definition_holds_together() {
        definition(Language::English).debug_assert();
        definition(Language::Chinese).debug_assert();
    }

    #[test]
    fn an_option_has_every_name_that_people_know() {
        for line in [
            "memory gpt2 --per_device_train_batch_size 2 --gradient-accumulation-steps 4",
            "memory gpt2 --micro-batch-size 2 --max_seq_length 4k --gradient_checkpointing",
            "check a.json --micro-batch 2 --grad_accum 4",
            "new --offload zero3 --per-device-train-batch-size 2",
            "simulate --offload meta/llama --max-length 128k",
        ] {
            read(&format!("zeropilot {line}")).expect(line);
        }
    }

    #[test]
    fn help_names_the_defaults_that_are_used() {
        let definition = definition(Language::English);
        let memory = definition.find_subcommand("memory").expect("a command");
        for (id, default) in [
            ("seq_len", Training::SEQ_LEN.to_string()),
            ("lora_rank", Training::LORA_RANK.to_string()),
        ] {
            let help = memory.get_arguments().find(|argument| argument.get_id() == id);
            let help = help.and_then(Arg::get_help).map(ToString::to_string).unwrap_or_default();
            assert!(help.ends_with(&format!("[default: {default}]")), "{help}");
        }
    }

    #[test]
    fn what_a_command_does_not_use_is_unknown_to_it() {
        for line in ["memory gpt2 --network 8xNDR", "plan gpt2 --grad-accum 2"] {
            let error = read(&format!("zeropilot {line}")).expect_err(line);
            assert!(error.to_string().contains("unexpected argument"), "{error}");
        }
    }
}
