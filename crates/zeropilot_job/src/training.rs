//! What the training script itself says: the arguments it writes out, the defaults of its options,
//! the config it names or holds.
//!
//! A launch line wins over the default of an option, and what a script writes out wins over both. A
//! field that the script fills from something that is not written out is unknown, whatever the
//! launch line says about an option of that name. A script may also take nothing from the launch line: its training
//! arguments are in a file whose name is fixed, or it writes them all out and parses nothing.

use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::syntax::Span;

use crate::arguments::{ACCELERATE_SECTION, CLIENT_OPTIMIZER, Given};
use crate::dictionary::as_json;
use crate::launch::Launch;
use crate::launcher::Launcher;
use crate::place::{Named, Place};
use crate::python::{Call, PythonScript, Value};
use crate::python_reader;
use crate::script::Files;
use crate::yaml;

/// Classes whose fields are the arguments of the HF Trainer.
const TRAINING_ARGUMENTS: [&str; 12] = [
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "GRPOConfig",
    "KTOConfig",
    "ORPOConfig",
    "CPOConfig",
    "RewardConfig",
    "RLOOConfig",
    "GKDConfig",
    "PPOConfig",
];

/// Calls that make training arguments out of the command line.
const FROM_COMMAND_LINE: [&str; 5] = [
    "parse_args_into_dataclasses",
    "parse_args_and_config",
    "parse_yaml_file",
    "parse_json_file",
    "parse_dict",
];

/// Those of them that take everything from their first argument, which has this name.
const FROM_ARGUMENT: [(&str, &str); 3] =
    [("parse_yaml_file", "yaml_file"), ("parse_json_file", "json_file"), ("parse_dict", "args")];

/// What programs that look at their command line have in their text.
const PARSERS: [&str; 12] = [
    "argv",
    "argparse",
    "ArgumentParser",
    "parse_",
    "click",
    "fire",
    "tyro",
    "typer",
    "hydra",
    "docopt",
    "absl",
    "OmegaConf",
];

/// Whether this class has the fields of `TrainingArguments`.
pub fn is_training_arguments(class: &str) -> bool {
    TRAINING_ARGUMENTS.contains(&class)
}

/// What hands a config on without training arguments.
const OTHER_WAYS: [&str; 2] = ["HfDeepSpeedConfig", "DeepSpeedPlugin"];

impl PythonScript {
    /// Where the training arguments come to be.
    pub fn training_arguments(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| {
            TRAINING_ARGUMENTS.contains(&call.name()) || FROM_COMMAND_LINE.contains(&call.name())
        })
    }

    /// Whether the command line may set any of the training arguments.
    pub fn reads_command_line(&self) -> bool {
        self.settled_arguments().is_none()
            && self.training_arguments().any(|call| FROM_COMMAND_LINE.contains(&call.name()))
    }

    /// The one call that makes the training arguments, where it takes them from a file or a dictionary that the script
    /// itself names, whatever the command line says.
    fn settled_arguments(&self) -> Option<&Call> {
        let mut made = self.training_arguments();
        let call = made.next().filter(|_| made.next().is_none())?;
        let is_handed_on = self.calls.iter().any(|call| call.callee == "deepspeed.initialize");
        let (value, _) = settled_by(call).filter(|_| !is_handed_on)?;
        matches!(value, Value::Literal(_) | Value::Dict(_)).then_some(call)
    }

    /// The first call of something by its whole name.
    pub fn call(&self, callee: &str) -> Option<&Call> {
        self.calls.iter().find(|call| call.callee == callee)
    }

    /// The one engine of the script: the call that makes it and the name it has.
    pub fn engine(&self) -> Option<(&Call, &str)> {
        let mut calls = self.calls.iter().filter(|call| call.callee == "deepspeed.initialize");
        let call = calls.next().filter(|_| calls.next().is_none())?;
        Some((call, call.bound_to.as_deref()?))
    }

    /// Whether the engine is what a call means by the engine's name: below where it is made, or in a function
    /// that is handed something called an engine.
    pub fn is_on_engine(&self, call: &Call) -> bool {
        self.engine().is_some_and(|(made, name)| {
            call.follows(made) || (call.scope != made.scope && name.contains("engine"))
        })
    }

    /// The one `Accelerator` of the script, by its name.
    pub fn accelerator(&self) -> Option<&str> {
        let mut calls = self.calls.iter().filter(|call| call.name() == "Accelerator");
        calls.next().filter(|_| calls.next().is_none())?.bound_to.as_deref()
    }

    /// Whether something by this name is called anywhere.
    pub fn calls(&self, name: &str) -> bool {
        self.calls.iter().any(|call| call.name() == name)
    }

    /// The default of an option of `argparse`, and where it stands.
    pub fn option_default(&self, name: &str) -> Option<(&Value, Span)> {
        self.option(name)?.keyword("default")
    }

    /// Whether an option of `argparse` is `None` where it is not given.
    pub(crate) fn is_option_none(&self, name: &str) -> bool {
        self.option(name).is_some_and(|call| match call.keyword("default") {
            Some((value, _)) => *value == Value::None,
            None => {
                let is_written = |name| call.keyword(name).is_some();
                !call.has_more && !is_written("action") && !is_written("required")
            }
        })
    }

    /// The call that adds an option of `argparse`.
    fn option(&self, name: &str) -> Option<&Call> {
        let is_it = |call: &&Call| {
            let positional = call.positional.iter();
            let mut flags = positional.filter_map(|(value, _)| match value {
                Value::Literal(flag) => Some(flag.trim_start_matches('-').replace('-', "_")),
                _ => None,
            });
            call.name() == "add_argument" && flags.any(|flag| flag == name)
        };
        self.calls.iter().find(is_it)
    }
}

/// Adds what the training script says to a launch.
pub(super) fn read_program(launch: &mut Launch, files: Files<'_>) {
    let Some(name) = launch.program.clone().filter(|name| name.ends_with(".py")) else { return };
    let Some(text) = files(&name) else { return };
    let script = python_reader::read(&text);
    let reader = Reader {
        script: &script,
        name: &name,
        text: &text,
        is_line_known: launch.is_written_out(),
        by_accelerate: launch.launcher == Launcher::Accelerate,
    };
    match script.settled_arguments() {
        Some(call) => {
            let settings = reader.settings(call, &|name| files(&launch.path(name)));
            let settings =
                settings.map(|(place, entries)| (place.map(|it| launch.path(&it)), entries));
            reader.settled(call, settings, &mut launch.given);
        }
        None => reader.read(&mut launch.given),
    }
    launch.script = Some(script);
}

/// What a file or a dictionary says: the file's name, unless it is the script, and its scalars.
type Settings = (Option<String>, Vec<yaml::Entry>);

struct Reader<'a> {
    script: &'a PythonScript,
    name: &'a str,
    text: &'a str,
    /// Whether the program gets arguments and all of them are known.
    is_line_known: bool,
    /// Whether accelerate starts the program, and may hand it a config by itself.
    by_accelerate: bool,
}

impl Reader<'_> {
    /// What that file or dictionary says; `None` if it cannot be read.
    fn settings(&self, call: &Call, files: Files<'_>) -> Option<Settings> {
        match settled_by(call)?.0 {
            Value::Literal(name) => Some((Some(name.clone()), yaml::scalars(&files(name)?))),
            Value::Dict(dict) => Some((None, yaml::scalars(&as_json(self.text, *dict)?))),
            _ => None,
        }
    }

    /// Training arguments that the command line has no part in.
    fn settled(&self, call: &Call, settings: Option<Settings>, given: &mut Given) {
        let line = Given { values: std::mem::take(&mut given.values), ..Given::default() };
        self.keep_section(&line, given);
        given.unknown.clear();
        given.front_end = Some(FrontEnd::HfTrainer);
        let is_set_later = self.script.sets_anywhere("deepspeed");
        let hidden = Named { text: None, place: Place::in_file(self.name, call.span) };
        if !self.by_accelerate {
            given.config = (settings.is_none() || is_set_later).then(|| hidden.clone());
        }
        let Some((file, entries)) = settings else { return };
        let file = file.as_deref().unwrap_or(self.name);
        for entry in entries {
            let place = Place::in_file(file, entry.span);
            match entry.key.as_str() {
                "deepspeed" if is_set_later => {}
                "deepspeed" => given.config = Some(Named { text: Some(entry.value), place }),
                key if key.starts_with("deepspeed.") => given.config = Some(hidden.clone()),
                key if self.script.sets_anywhere(key) => given.unknown.push(key.to_owned()),
                key => given.say(key, entry.value, place),
            }
        }
    }

    /// Whether the script writes its training arguments out, without a config, and looks at no command line.
    fn takes_no_config(&self, written: &[&Call]) -> bool {
        let has_config = |call: &Call| {
            call.keyword("deepspeed").is_some() || call.has_more || call.positional.len() > 1
        };
        let has = |words: &[&str]| words.iter().any(|word| self.text.contains(word));
        !written.is_empty()
            && !self.by_accelerate
            && !written.iter().any(|call| has_config(call))
            && !self.script.sets_anywhere("deepspeed")
            && !self.text.contains("deepspeed.initialize")
            && !has(&PARSERS)
            && !has(&OTHER_WAYS)
    }

    fn read(&self, given: &mut Given) {
        let written: Vec<&Call> = self
            .script
            .calls
            .iter()
            .filter(|call| TRAINING_ARGUMENTS.contains(&call.name()))
            .collect();
        let parses = self.script.reads_command_line();
        let initialize: Vec<&Call> =
            self.script.calls.iter().filter(|call| call.callee == "deepspeed.initialize").collect();
        let accelerator = self.script.calls.iter().find(|call| call.name() == "Accelerator");
        let front_end = if !written.is_empty() || parses {
            Some(FrontEnd::HfTrainer)
        } else if !initialize.is_empty() {
            Some(FrontEnd::DeepSpeed)
        } else {
            accelerator.map(|_| FrontEnd::Accelerate)
        };
        let opens_config = written.is_empty() && self.opens_config();
        if let [call, ..] = initialize.as_slice()
            && parses
            && opens_config
            && !self.makes_trainer()
        {
            // Only its own options are parsed, and DeepSpeed gets what it makes of the file.
            given.front_end = Some(FrontEnd::DeepSpeed);
            given.config = Some(Named { text: None, place: Place::in_file(self.name, call.span) });
            return;
        }
        given.is_reader_an_option &= front_end.is_none();
        given.is_reader_hidden = opens_config && initialize.is_empty();
        given.front_end = match given.is_reader_hidden {
            true => None,
            // A Trainer that is made without training arguments of this script has them from elsewhere.
            false => front_end.or(given
                .front_end
                .filter(|named| !(*named == FrontEnd::DeepSpeed && self.makes_trainer()))),
        };
        if !parses && self.takes_no_config(&written) {
            given.config = None;
        }
        match (written.as_slice(), initialize.as_slice()) {
            _ if parses => {}
            ([call], _) => self.fields(call, given),
            // Which of several holds depends on the way through the script.
            ([_, ..], _) => self.several(&written, given),
            ([], [call]) => self.initialize(call, given),
            ([], [_, ..]) => {}
            ([], []) => {
                if let Some(call) = accelerator {
                    self.accelerator(call, given);
                }
            }
        }
    }

    /// Whether the script opens the config itself.
    fn opens_config(&self) -> bool {
        let is_config = |span: &Span| {
            let named = span.of(self.text).and_then(|text| text.rsplit('.').next());
            matches!(named, Some("deepspeed" | "deepspeed_config"))
        };
        let mut calls = self.script.calls.iter().filter(|call| call.name() == "open");
        calls.any(|call| call.positional.first().is_some_and(|(_, span)| is_config(span)))
    }

    fn makes_trainer(&self) -> bool {
        self.script.calls.iter().any(|call| call.name().ends_with("Trainer"))
    }

    /// Several calls that make training arguments: none of their fields is known.
    fn several(&self, calls: &[&Call], given: &mut Given) {
        given.values.retain(|said| said.name.starts_with(ACCELERATE_SECTION));
        let names = calls.iter().flat_map(|call| &call.keywords).map(|(name, ..)| name);
        for name in names.filter(|name| *name != "deepspeed") {
            if !given.unknown.contains(name) {
                given.unknown.push(name.clone());
            }
        }
    }

    /// The fields of training arguments that are written out in the script.
    fn fields(&self, call: &Call, given: &mut Given) {
        let line = Given {
            values: std::mem::take(&mut given.values),
            unknown: std::mem::take(&mut given.unknown),
            ..Given::default()
        };
        self.keep_section(&line, given);
        let object = call.bound_to.as_deref().unwrap_or("");
        // Other classes have defaults of their own; `output_dir` may go without its name.
        given.has_defaults =
            matches!(call.name(), "TrainingArguments" | "Seq2SeqTrainingArguments")
                && !call.has_more
                && call.positional.len() <= 1;
        given.unknown.extend(self.script.set_on(object).map(str::to_owned));
        for (name, value, span) in &call.keywords {
            if self.script.sets(object, name) {
                given.unknown.push(name.clone());
            } else if name == "deepspeed" {
                self.config(value, *span, &line, given);
            } else {
                self.field(name, value, *span, &line, given);
            }
        }
    }

    /// What accelerate has in its own YAML is not the script's to say.
    fn keep_section(&self, line: &Given, given: &mut Given) {
        let section = line.values.iter().filter(|said| said.name.starts_with(ACCELERATE_SECTION));
        given.values.extend(section.cloned());
    }

    /// One field: written out, or an option with what the launch line or its default says.
    fn field(&self, name: &str, value: &Value, span: Span, line: &Given, given: &mut Given) {
        match value {
            Value::Literal(text) => given.say(name, text, Place::in_file(self.name, span)),
            Value::None => {}
            Value::Argument(option) => match self.option(option, line) {
                Some((text, place)) => given.say(name, text, place),
                None => given.unknown.push(name.to_owned()),
            },
            // A section of its own says nothing about the run as a whole.
            Value::Dict(_) => {}
            Value::List(_) | Value::Call(_) | Value::Unknown => {
                given.unknown.push(name.to_owned());
            }
        }
    }

    fn option(&self, option: &str, line: &Given) -> Option<(String, Place)> {
        if self.script.sets("args", option) {
            return None;
        }
        if let Some(said) = line.said(option) {
            return Some((said.value.clone(), said.place.clone()));
        }
        if line.unknown.iter().any(|unknown| unknown == option) {
            return None;
        }
        match self.script.option_default(option)? {
            (Value::Literal(text), span) => Some((text.clone(), Place::in_file(self.name, span))),
            _ => None,
        }
    }

    /// Whether an option is `None`, because the command line, which is known, does not give it.
    fn is_left_out(&self, option: &str, line: &Given) -> bool {
        self.is_line_known
            && !self.script.sets("args", option)
            && line.said(option).is_none()
            && !line.unknown.iter().any(|unknown| unknown == option)
            && self.script.is_option_none(option)
    }

    fn config(&self, value: &Value, span: Span, line: &Given, given: &mut Given) {
        let place = Place::in_file(self.name, span);
        match value {
            Value::Literal(path) => {
                given.config = Some(Named { text: Some(path.clone()), place });
            }
            // What is not written out in a dictionary, only the run knows.
            Value::Dict(dict) if as_json(self.text, *dict).is_none() => {
                given.config = Some(Named { text: None, place });
            }
            Value::Dict(dict) => {
                given.config = None;
                given.dictionary = Some(Place::in_file(self.name, *dict));
            }
            Value::None => given.config = None,
            Value::Argument(option) => {
                let known = self.option(option, line);
                if known.is_none() && given.config.is_none() && self.is_left_out(option, line) {
                    return;
                }
                // The launch line names a config by options that are looked for there already.
                if known.is_some() || given.config.is_none() {
                    let (text, place) = known.map_or((None, place), |(text, at)| (Some(text), at));
                    given.config = Some(Named { text, place });
                }
            }
            Value::List(_) | Value::Call(_) | Value::Unknown => {
                if given.config.is_none() {
                    given.config = Some(Named { text: None, place });
                }
            }
        }
    }

    fn initialize(&self, call: &Call, given: &mut Given) {
        let config = call.keyword("config").or_else(|| call.keyword("config_params"));
        if let Some((value, span)) = config {
            let line = Given {
                values: given.values.clone(),
                unknown: given.unknown.clone(),
                ..Given::default()
            };
            self.config(value, span, &line, given);
        }
        if let Some((value, span)) = call.keyword("optimizer") {
            let class = match value {
                Value::Call(class) => Some(class.as_str()),
                // The name is often bound again, to what this call gives.
                _ => call.handed(2, "optimizer").and_then(|name| self.made_before(call, name)),
            };
            if let Some(class) = class {
                given.say(CLIENT_OPTIMIZER, class, Place::in_file(self.name, span));
            }
        }
    }

    /// What is called to make a name, where only one assignment before a call in its function does and always runs.
    fn made_before(&self, call: &Call, name: &str) -> Option<&str> {
        let assigned = self.script.assignments.iter().filter(|it| {
            it.target == name && it.scope == call.scope && it.span.end <= call.span.start
        });
        let makes = |it: &&Call| call.follows(it) && it.bound_names == [name];
        let made = self.script.calls.iter().find(makes)?;
        (assigned.count() == 1 && made.questions.is_empty()).then_some(made.callee.as_str())
    }

    fn accelerator(&self, call: &Call, given: &mut Given) {
        let line = Given {
            values: std::mem::take(&mut given.values),
            unknown: std::mem::take(&mut given.unknown),
            ..Given::default()
        };
        given.values.extend(line.said("mixed_precision").cloned());
        self.keep_section(&line, given);
        for name in ["gradient_accumulation_steps", "mixed_precision"] {
            if let Some((value, span)) = call.keyword(name) {
                self.field(name, value, span, &line, given);
            }
        }
        let plugin = self.script.calls.iter().find(|call| call.name() == "DeepSpeedPlugin");
        if let Some((value, span)) = plugin.and_then(|plugin| plugin.keyword("hf_ds_config")) {
            self.config(value, span, &line, given);
        }
    }
}

/// What a call that makes training arguments takes them from, where that is its own argument.
fn settled_by(call: &Call) -> Option<(&Value, Span)> {
    let (_, argument) = FROM_ARGUMENT.iter().find(|(name, _)| *name == call.name())?;
    call.argument(0, argument)
}
