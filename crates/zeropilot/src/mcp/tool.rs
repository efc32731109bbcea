//! A verb as a tool: its options as a JSON Schema, and a call as the words of a command line.

use std::ffi::OsString;

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value, json};
use zeropilot_text::Language;
use zeropilot_view::agent;

/// What a call passes, by name.
pub(super) type Arguments = Map<String, Value>;

/// Verbs that only answer.
const VERBS: [&str; 10] = [
    "plan",
    "memory",
    "simulate",
    "check",
    "diagnose",
    "explain",
    "rule",
    "advisories",
    "models",
    "gpus",
];

/// Options that write files, go on for ever or say how a terminal looks.
const NO_PARAMETERS: [&str; 15] = [
    "color",
    "fix",
    "force",
    "help",
    "json",
    "no_settings",
    "output",
    "output_format",
    "quiet",
    "svg",
    "trace",
    "unsafe_fixes",
    "version",
    "watch",
    "write_baseline",
];

/// A verb as a tool.
pub(super) struct Tool {
    verb: Command,
}

/// What a parameter takes.
enum Kind {
    /// Nothing: it is there or not.
    Switch,
    /// A value, or nothing.
    SwitchOrValue,
    /// A value.
    One,
    /// Values.
    Many,
}

impl Tool {
    /// All of them, of the verbs of a definition.
    pub(super) fn all(mut definition: Command) -> Vec<Self> {
        // Global options become those of each verb.
        definition.build();
        let verb = |name: &&str| definition.find_subcommand(name).cloned();
        VERBS.iter().filter_map(verb).map(|verb| Self { verb }).collect()
    }

    pub(super) fn name(&self) -> &str {
        self.verb.get_name()
    }

    /// As `tools/list` says it.
    pub(super) fn description(&self) -> Value {
        let about = self.verb.get_about().map(ToString::to_string).unwrap_or_default();
        let properties: Map<String, Value> =
            self.parameters().map(|one| (name(one), schema(one))).collect();
        let required: Vec<String> =
            self.parameters().filter(|one| one.is_required_set()).map(name).collect();
        json!({
            "name": self.name(),
            "description": about,
            "inputSchema": {
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            },
            "annotations": {"readOnlyHint": true},
        })
    }

    /// The words after the name of the program, or what is wrong with the arguments.
    pub(super) fn command_line(
        &self,
        arguments: &Arguments,
        language: Language,
    ) -> Result<Vec<OsString>, String> {
        let mut words: Vec<OsString> = vec![self.name().into(), "--json".into()];
        let mut positional: Vec<OsString> = Vec::new();
        for (key, value) in arguments {
            let Some(parameter) = self.parameters().find(|one| name(one) == *key) else {
                let known: Vec<String> = self.parameters().map(name).collect();
                return Err(agent::unknown_parameter(self.name(), key, &known, language));
            };
            let wrong = || agent::wrong_value(key, wanted(parameter), value, language);
            let values = match (kind(parameter), value) {
                (_, Value::Null) => continue,
                (Kind::Switch, Value::Bool(false)) => continue,
                (Kind::Switch, Value::Bool(true)) => {
                    words.push(format!("--{}", long(parameter)).into());
                    continue;
                }
                (Kind::SwitchOrValue, Value::Bool(is_on)) => vec![is_on.to_string()],
                (Kind::Many, Value::Array(items)) => {
                    items.iter().map(text).collect::<Option<_>>().ok_or_else(wrong)?
                }
                (Kind::SwitchOrValue | Kind::One | Kind::Many, value) => {
                    vec![text(value).ok_or_else(wrong)?]
                }
                (Kind::Switch, _) => return Err(wrong()),
            };
            if parameter.is_positional() {
                positional.extend(values.into_iter().map(OsString::from));
            } else {
                let option = long(parameter);
                // Joined, so that no value is read as another option.
                words.extend(values.iter().map(|value| format!("--{option}={value}").into()));
            }
        }
        words.push("--".into());
        words.extend(positional);
        Ok(words)
    }

    fn parameters(&self) -> impl Iterator<Item = &Arg> {
        self.verb.get_arguments().filter(|argument| {
            let is_left_out = NO_PARAMETERS.contains(&argument.get_id().as_str());
            !is_left_out && !argument.is_hide_set()
        })
    }
}

fn long(argument: &Arg) -> &str {
    argument.get_long().unwrap_or(argument.get_id().as_str())
}

/// As JSON spells names.
fn name(argument: &Arg) -> String {
    long(argument).replace('-', "_")
}

fn kind(argument: &Arg) -> Kind {
    let values = argument.get_num_args().unwrap_or_default();
    let is_list = matches!(argument.get_action(), ArgAction::Append) || values.max_values() > 1;
    match argument.get_action() {
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count => Kind::Switch,
        _ if is_list => Kind::Many,
        _ if values.min_values() == 0 && !argument.is_positional() => Kind::SwitchOrValue,
        _ => Kind::One,
    }
}

fn schema(argument: &Arg) -> Value {
    let values = argument.get_possible_values();
    let values: Vec<&str> =
        values.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name()).collect();
    let mut schema = match kind(argument) {
        Kind::Switch => json!({"type": "boolean"}),
        Kind::SwitchOrValue => json!({"type": ["boolean", "string"]}),
        Kind::Many => json!({"type": "array", "items": {"type": "string"}}),
        Kind::One if values.is_empty() => json!({"type": ["string", "number"]}),
        Kind::One => json!({"type": "string", "enum": values}),
    };
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    schema["description"] = help.into();
    schema
}

/// What a value must be, in JSON's words.
fn wanted(argument: &Arg) -> &'static str {
    match kind(argument) {
        Kind::Switch => "true | false",
        Kind::SwitchOrValue => "true | false | \"…\"",
        Kind::One => "\"…\" | 1",
        Kind::Many => "[\"…\"]",
    }
}

/// A value as a word; lists and objects are none.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn tools() -> Vec<Tool> {
        Tool::all(parse::definition(Language::English))
    }

    fn tool(name: &str) -> Tool {
        tools().into_iter().find(|tool| tool.name() == name).expect("a tool")
    }

    fn words(name: &str, arguments: Value) -> Result<Vec<String>, String> {
        let arguments = arguments.as_object().expect("an object");
        let words = tool(name).command_line(arguments, Language::English)?;
        Ok(words.into_iter().map(|word| word.into_string().expect("text")).collect())
    }

    #[test]
    fn every_verb_is_there_and_says_what_it_takes() {
        assert_eq!(tools().len(), VERBS.len());
        for tool in tools() {
            let description = tool.description();
            let properties = description["inputSchema"]["properties"].as_object().expect("some");
            for (name, schema) in properties {
                let said = schema["description"].as_str().unwrap_or_default();
                assert!(!said.is_empty(), "{} {name}", tool.name());
            }
            assert!(tool.verb.get_arguments().any(|one| one.get_id() == "json"), "{}", tool.name());
        }
    }

    #[test]
    fn nothing_that_writes_is_a_parameter() {
        for name in ["fix", "output", "write_baseline", "svg", "trace", "force"] {
            for tool in tools() {
                let arguments = Map::from_iter([(name.to_owned(), json!("file"))]);
                assert!(tool.command_line(&arguments, Language::English).is_err(), "{name}");
            }
        }
    }

    #[test]
    fn values_become_words() {
        let asked = json!({"job": "train.sh", "gpus": "8xH100", "seq_len": 4096, "liger": false, "compare": true});
        let mut said = words("memory", asked).expect("words");
        assert_eq!(said.split_off(said.len() - 2), ["--", "train.sh"]);
        said.sort();
        assert_eq!(
            said,
            ["--compare", "--gpus=8xH100", "--json", "--liger=false", "--seq-len=4096", "memory"]
        );
        assert_eq!(
            words("check", json!({"paths": ["a.json", "-b.json"]})),
            Ok(["check", "--json", "--", "a.json", "-b.json"].map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let unknown = words("plan", json!({"gpu": "8xH100"})).expect_err("unknown");
        assert!(unknown.contains("`gpu`") && unknown.contains("gpus"), "{unknown}");
        let wrong = words("memory", json!({"compare": "yes"})).expect_err("wrong");
        assert!(wrong.contains("compare") && wrong.contains("true | false"), "{wrong}");
    }

    #[test]
    fn values_stay_values() {
        for value in ["--output=x", "-o", "--", "", "a b", "\"; rm", "--json", "八"] {
            for asked in [json!({"job": value}), json!({"gpus": value})] {
                let said = words("plan", asked).expect("words");
                let end = said.iter().position(|word| word == "--").expect("an end");
                let options = &said[2..end];
                assert!(options.iter().all(|word| word.starts_with("--gpus=")), "{said:?}");
            }
        }
    }
}
