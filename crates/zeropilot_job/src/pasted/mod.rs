//! A text as people paste it from a chat, an issue or an editor: what it is, and the DeepSpeed config in it.
//!
//! Code fences, typographic quotes, Python dictionaries, YAML and what else surrounds a config on its way are removed
//! or rewritten, and every such [`Change`] is listed. A text that is no config is named as what it is.

mod literal;
mod peel;
mod yaml_config;

use crate::inline_config;
use crate::kind::{DEEPSPEED_KEYS, FileKind};
use crate::yaml;

/// What a pasted text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PastedKind {
    /// Nothing but spaces.
    Empty,
    /// A DeepSpeed config.
    Config,
    /// The `config.json` of a model.
    ModelConfig,
    /// Another file beside a model or a checkpoint.
    BesideModel,
    /// A shell script or a command that starts training.
    LaunchScript,
    /// A Python program.
    TrainingScript,
    /// accelerate's YAML.
    Accelerate,
    /// LLaMA-Factory's YAML or JSON.
    LlamaFactory,
    /// axolotl's YAML.
    Axolotl,
    /// ms-swift's YAML or JSON.
    Swift,
    /// Hosts and their slots.
    Hostfile,
    /// The output of a run.
    Log,
    /// None of these.
    Other,
}

impl PastedKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Config => "config",
            Self::ModelConfig => "model_config",
            Self::BesideModel => "beside_model",
            Self::LaunchScript => "launch_script",
            Self::TrainingScript => "training_script",
            Self::Accelerate => "accelerate",
            Self::LlamaFactory => "llamafactory",
            Self::Axolotl => "axolotl",
            Self::Swift => "swift",
            Self::Hostfile => "hostfile",
            Self::Log => "log",
            Self::Other => "other",
        }
    }
}

impl From<FileKind> for PastedKind {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::DeepSpeedConfig => Self::Config,
            FileKind::ModelConfig => Self::ModelConfig,
            FileKind::BesideModel => Self::BesideModel,
            FileKind::LaunchScript => Self::LaunchScript,
            FileKind::TrainingScript => Self::TrainingScript,
            FileKind::Accelerate => Self::Accelerate,
            FileKind::LlamaFactory => Self::LlamaFactory,
            FileKind::Axolotl => Self::Axolotl,
            FileKind::Swift => Self::Swift,
            FileKind::Other => Self::Other,
        }
    }
}

/// What was done to a text so that the config in it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A code fence is gone.
    Fence,
    /// Text before or after the config is gone.
    Around,
    /// A mark or a number at the beginning of every line is gone.
    LinePrefix,
    /// `\"` is `"` again.
    Escapes,
    /// `&quot;` is `"` again.
    Entities,
    /// This many typographic or single quotes are `"`.
    Quotes(usize),
    /// This many full-width marks are those of JSON.
    Punctuation(usize),
    /// This many invisible characters or unusual spaces are gone.
    Invisible(usize),
    /// This many words of Python are those of JSON: `True`, `None`, `1_000`.
    Python(usize),
    /// YAML is JSON.
    Yaml,
    /// A value is a Python expression, which only the program can compute. It is left as it is.
    Expression(String),
    /// The outer braces were missing.
    Braces,
    /// The end was cut off; this many brackets are closed.
    Closed(usize),
    /// accelerate builds this config from the fields of its own file.
    Built,
}

impl Change {
    /// Whether it guesses at what the text said.
    pub fn is_guess(&self) -> bool {
        matches!(self, Self::Braces | Self::Closed(_) | Self::Expression(_))
    }
}

/// A pasted text, recognized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pasted {
    /// What it is.
    pub kind: PastedKind,
    /// The DeepSpeed config in it.
    pub config: Option<String>,
    /// What was done to the text for that; none if the config is the text.
    pub changes: Vec<Change>,
    /// The file of the DeepSpeed config that it names.
    pub named_config: Option<String>,
    /// The settings of a framework's file, by the names that the HF Trainer or accelerate has for them.
    pub arguments: Vec<(String, String)>,
}

/// Keys by which a piece of text is a config; beginnings, as names are misspelt.
const BEGINNINGS: [&str; 6] =
    ["zero_opt", "train_batch_s", "train_micro", "stage3_", "offload_optim", "offload_param"];

fn speaks_of_config(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.contains(beginning))
}

impl Pasted {
    /// What this text is; its file's name helps where it has one.
    pub fn of(name: Option<&str>, text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.trim().is_empty() {
            return Self::plain(PastedKind::Empty);
        }
        let mut changes = Vec::new();
        let block = peel::fenced(text, &speaks_of_config);
        let block = match block {
            Some(block) => {
                changes.push(Change::Fence);
                block
            }
            None => text.to_owned(),
        };
        if let Some(kind) = name.and_then(|name| by_name(name, &block)) {
            return Self::of_kind(kind, &block, changes);
        }
        if let Some(kind) = program(&block) {
            return Self::of_kind(kind, &block, changes);
        }
        let block = peel::layers(&block, &mut changes);
        if let Some((config, more)) = config_in(&block) {
            let kind = if is_log(&block) { PastedKind::Log } else { PastedKind::Config };
            changes.extend(more);
            return Self { kind, config: Some(config), changes, ..Self::plain(kind) };
        }
        if is_log(&block) {
            return Self::plain(PastedKind::Log);
        }
        if block.trim_start().starts_with(['{', '[']) {
            let kind = match FileKind::of("pasted.json", &block) {
                FileKind::Other => PastedKind::Config,
                kind => kind.into(),
            };
            let config = (kind == PastedKind::Config).then_some(block);
            let changes = if config.is_some() { changes } else { Vec::new() };
            return Self { config, changes, ..Self::plain(kind) };
        }
        if is_hostfile(&block) {
            return Self::plain(PastedKind::Hostfile);
        }
        match FileKind::of("pasted.yaml", &block).into() {
            PastedKind::Other => match yaml_config::as_json(&block) {
                Some(config) => {
                    changes.push(Change::Yaml);
                    Self { config: Some(config), changes, ..Self::plain(PastedKind::Config) }
                }
                None => Self::plain(PastedKind::Other),
            },
            kind => Self::of_kind(kind, &block, Vec::new()),
        }
    }

    /// Whether the config can be used without asking: it is the text but for what pasting added.
    pub fn is_certain(&self) -> bool {
        self.kind == PastedKind::Config && !self.changes.iter().any(Change::is_guess)
    }

    fn plain(kind: PastedKind) -> Self {
        Self { kind, config: None, changes: Vec::new(), named_config: None, arguments: Vec::new() }
    }

    /// A text of this kind, with what it says about the config.
    fn of_kind(kind: PastedKind, text: &str, mut changes: Vec<Change>) -> Self {
        let mut found = Self::plain(kind);
        match kind {
            PastedKind::LaunchScript | PastedKind::TrainingScript | PastedKind::Config => {
                if let Some((config, more)) = config_in(text) {
                    changes.extend(more);
                    found.config = Some(config);
                    found.changes = changes;
                } else if kind == PastedKind::Config {
                    found.config = Some(text.to_owned());
                }
                if kind == PastedKind::LaunchScript {
                    found.named_config = named_config(text);
                }
            }
            PastedKind::Accelerate
            | PastedKind::LlamaFactory
            | PastedKind::Axolotl
            | PastedKind::Swift => found.read_settings(text),
            _ => {}
        }
        found
    }

    /// What a framework's file says.
    fn read_settings(&mut self, text: &str) {
        let entries = yaml::scalars(text);
        let value = |key: &str| {
            entries.iter().find(|entry| entry.key == key).map(|entry| entry.value.clone())
        };
        let config = match self.kind {
            PastedKind::Accelerate => value("deepspeed_config.deepspeed_config_file"),
            _ => value("deepspeed"),
        };
        self.named_config = config.filter(|name| name != "none");
        let is_axolotl = self.kind == PastedKind::Axolotl;
        for entry in &entries {
            let key = entry.key.as_str();
            let name = if is_axolotl { yaml::axolotl_argument(key) } else { key };
            self.arguments.push((name.to_owned(), entry.value.clone()));
        }
        let section = "deepspeed_config.";
        if self.kind == PastedKind::Accelerate
            && self.named_config.is_none()
            && value("distributed_type").is_some_and(|kind| kind == "DEEPSPEED")
        {
            let config = inline_config::built(&|name| value(&format!("{section}{name}")));
            self.config = serde_json::to_string_pretty(&config).ok();
            self.changes = vec![Change::Built];
        }
    }
}

/// What the name of a file settles.
fn by_name(name: &str, text: &str) -> Option<PastedKind> {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
    match ending.as_str() {
        "log" | "out" | "err" => Some(PastedKind::Log),
        "txt" | "md" | "json" | "hjson" | "jsonc" | "" => None,
        _ => match FileKind::of(name, text) {
            FileKind::Other => None,
            kind => Some(kind.into()),
        },
    }
}

/// Commands that start training.
const STARTERS: [&str; 10] = [
    "deepspeed ",
    "torchrun ",
    "accelerate launch ",
    "python -m torch.distributed",
    "llamafactory-cli ",
    "axolotl train ",
    "swift sft ",
    "srun ",
    "ds ",
    "mpirun ",
];

/// A shell script or a Python program, by what only those begin lines with.
fn program(text: &str) -> Option<PastedKind> {
    let first = text.trim_start();
    if first.starts_with("#!") {
        let line = first.lines().next().unwrap_or("");
        if line.contains("python") {
            return Some(PastedKind::TrainingScript);
        }
        if line.contains("sh") {
            return Some(PastedKind::LaunchScript);
        }
    }
    let mut lines = text.lines().map(|line| line.trim_start_matches(['$', ' ', '\t']));
    let starts = |line: &str| {
        let line = line.trim_start_matches(|mark: char| mark.is_ascii_uppercase() || mark == '_');
        // Variables set for one command stand before it.
        let line = match line.strip_prefix('=') {
            Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest.trim_start()),
            None => line,
        };
        STARTERS.iter().any(|starter| {
            line.strip_prefix(starter).is_some_and(|rest| {
                let rest = rest.trim_start();
                rest.starts_with(['-', '$', '\\', '"', '/'])
                    || rest.contains(".py")
                    || rest.contains(".yaml")
                    || rest.contains(" --")
            })
        })
    };
    if lines.clone().any(|line| line.starts_with("#SBATCH") || starts(line)) {
        return Some(PastedKind::LaunchScript);
    }
    let is_python = |line: &str| {
        (line.starts_with("import ") && !line.contains(';') && line.split_whitespace().count() <= 4)
            || (line.starts_with("from ") && line.contains(" import "))
            || (line.starts_with("def ") && line.trim_end().ends_with(':'))
            || line.contains("deepspeed.initialize(")
            || line.contains("TrainingArguments(")
    };
    let is_trace = text.contains("Traceback (most recent call last)");
    (!is_trace && lines.any(is_python)).then_some(PastedKind::TrainingScript)
}

/// Marks that only the output of a run has.
const OF_LOGS: [&str; 9] = [
    "Traceback (most recent call last)",
    "OutOfMemoryError",
    "CUDA out of memory",
    "[INFO] [",
    "[WARNING] [",
    "exits with return code",
    "ChildFailedError",
    "Watchdog caught collective operation timeout",
    "oom-kill",
];

fn is_log(text: &str) -> bool {
    OF_LOGS.iter().any(|mark| text.contains(mark))
}

fn is_hostfile(text: &str) -> bool {
    let mut lines =
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_host = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some()
            && words.next().and_then(|word| word.strip_prefix("slots=")).is_some_and(|count| {
                !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit())
            })
    };
    let first = lines.next();
    first.is_some_and(is_host) && lines.all(is_host)
}

/// The file that `--deepspeed` or `--deepspeed_config` names.
fn named_config(text: &str) -> Option<String> {
    let mut words = text.split(|mark: char| mark.is_whitespace() || mark == '=');
    while let Some(word) = words.next() {
        if matches!(word, "--deepspeed" | "--deepspeed_config" | "--deepspeed_config_file") {
            let next = words.clone().find(|word| !word.is_empty() && *word != "\\");
            let next = next.map(|word| word.trim_matches(['"', '\'']));
            if let Some(name) = next.filter(|name| name.ends_with("json")) {
                return Some(name.to_owned());
            }
        }
    }
    None
}

/// Objects that are looked at, at most.
const TRIED: usize = 64;

/// The config in a text, and what was done to it.
fn config_in(text: &str) -> Option<(String, Vec<Change>)> {
    let mut from = 0;
    for _ in 0..TRIED {
        let Some(found) = text.get(from..)?.find(['{', '｛']) else { break };
        let start = from + found;
        let read = literal::object(&text[start..]);
        let end = start + read.length;
        if speaks_of_config(&text[start..end]) {
            return Some(finished(text, start, end, read));
        }
        from = end.max(start + 1);
    }
    without_braces(text)
}

fn finished(text: &str, start: usize, end: usize, read: literal::Read) -> (String, Vec<Change>) {
    let (before, after) = (&text[..start], &text[end..]);
    let mut changes = read.changes;
    let is_comment = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.starts_with("//")
    };
    let stays =
        before.lines().all(is_comment) && (before.is_empty() || before.ends_with(['\n', ' ']));
    let ends = after.lines().all(is_comment);
    let mut config = String::new();
    if stays {
        config.push_str(before);
    }
    config.push_str(&read.text);
    if ends {
        config.push_str(after);
    } else {
        config.push('\n');
    }
    if !(stays && ends) {
        changes.insert(0, Change::Around);
    }
    (config, changes)
}

/// Members without the braces around them.
fn without_braces(text: &str) -> Option<(String, Vec<Change>)> {
    let trimmed = text.trim().trim_end_matches(',');
    let opens = trimmed.starts_with(['"', '\'', '“', '”', '‘', '’']);
    let key: String = trimmed
        .chars()
        .skip(1)
        .take_while(|mark| mark.is_ascii_alphanumeric() || *mark == '_')
        .collect();
    if !opens || !DEEPSPEED_KEYS.contains(&key.as_str()) {
        return None;
    }
    let read = literal::object(&format!("{{\n{trimmed}\n}}\n"));
    let mut changes = read.changes;
    changes.push(Change::Braces);
    Some((format!("{}\n", read.text), changes))
}
