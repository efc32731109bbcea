//! Options that several commands take.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use zeropilot_ask::parsers;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_units::Elements;
use zeropilot_view::Format;

use crate::color::ColorChoice;

/// Exit codes of commands that judge nothing.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 success, 2 failure";

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Set the language of all text; if omitted, from LC_ALL, LC_MESSAGES or LANG
    #[arg(long, global = true, value_name = "LANGUAGE")]
    pub(crate) lang: Option<LanguageName>,
    /// Choose when to use colors; `auto` respects NO_COLOR
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Ignore zeropilot.toml and [tool.zeropilot] in pyproject.toml
    #[arg(long, global = true)]
    pub(crate) no_settings: bool,
    /// Print only findings
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// A language by its short name.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LanguageName {
    /// English
    En,
    /// 中文
    Zh,
}

/// How a command writes its results.
#[derive(Debug, Args)]
pub(crate) struct FormatOptions {
    /// Set the output format
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    output_format: TextOrJson,
    /// Print JSON (short for --output-format json)
    #[arg(long, conflicts_with = "output_format")]
    json: bool,
}

/// Formats of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum TextOrJson {
    /// Text
    #[default]
    Human,
    /// JSON
    Json,
}

impl FormatOptions {
    /// Whether programs read the results.
    pub(crate) fn is_json(&self) -> bool {
        self.json || self.output_format == TextOrJson::Json
    }

    /// As views know it.
    pub(crate) fn format(&self) -> Format {
        if self.is_json() { Format::Json } else { Format::Human }
    }
}

/// Who reads a config, on how many ranks; what an editor sets counts before these.
#[derive(Debug, Args)]
pub(crate) struct ReaderOptions {
    /// Set the number of ranks (GPUs) of the run
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroUsize>,
    /// Set the DeepSpeed version that reads the config; if omitted, the installed version, or the newest known version
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    /// Set the framework that reads the config; if omitted, zeropilot guesses `hf-trainer` if the config contains "auto", otherwise `deepspeed`
    #[arg(long, value_name = "NAME", value_parser = parsers::front_end())]
    pub(crate) front_end: Option<FrontEnd>,
}

/// A machine that was measured.
#[derive(Debug, Args)]
pub(crate) struct MachineOption {
    /// Use this machine profile from `zeropilot calibrate`; if omitted, the profile of this machine if it has the same GPUs
    #[arg(long, value_name = "FILE")]
    pub(crate) machine: Option<PathBuf>,
}

/// The job that a question is about.
#[derive(Debug, Args)]
pub(crate) struct JobOptions {
    /// Training job: launch script, training script, framework YAML file, DeepSpeed config or directory; or a model
    #[arg(value_name = "JOB", required_unless_present_any = ["model", "params"])]
    pub(crate) job: Option<String>,
    /// Select a run by its number if the job starts several (the first is 1)
    #[arg(long, value_name = "N")]
    pub(crate) launch: Option<usize>,
    /// Set the model: built-in name, directory, config.json or Hugging Face ID; if omitted, the model in the job
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    #[command(flatten)]
    pub(crate) likeness: LikenessOptions,
}

/// A model that is not known: what it is like, or how large it is.
#[derive(Debug, Args, Default)]
pub(crate) struct LikenessOptions {
    /// Use this model family if the model's own family is unknown; the sizes come from the model's config.json
    #[arg(long, value_name = "FAMILY", conflicts_with = "params")]
    pub(crate) like: Option<String>,
    /// Set the parameter count of a model that has no config yet, such as `8B`
    #[arg(long, value_name = "N", requires_all = ["layers", "hidden"], conflicts_with_all = ["job", "model"])]
    pub(crate) params: Option<Elements>,
    /// Set the number of layers of a model that has no config yet
    #[arg(long, value_name = "N", requires = "params")]
    pub(crate) layers: Option<u64>,
    /// Set the hidden size of a model that has no config yet
    #[arg(long, value_name = "N", requires = "params")]
    pub(crate) hidden: Option<u64>,
}
