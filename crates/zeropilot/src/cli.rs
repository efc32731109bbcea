//! The arguments, as typed.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use zeropilot_ask::{Precision, ScriptArguments};
use zeropilot_config::front_end::{self, FrontEnd};
use zeropilot_lint::{Language, RULES, nearest_code};
use zeropilot_view::Format;

use crate::color::ColorChoice;
use crate::help_zh;
use crate::memory::arguments::{MemoryCommand, TrainingOptions as JobOptions};
use crate::new::options::NewCommand;
use crate::plan::PlanCommand;
#[cfg(target_os = "linux")]
use crate::run::arguments::RunArguments;
#[cfg(target_os = "linux")]
use crate::runs::{ReportCommand, RunsCommand};
use crate::shell_files::{CompletionsCommand, ManCommand};
use crate::simulate::arguments::SimulateCommand;
#[cfg(target_os = "linux")]
use crate::watch::WatchCommand;

/// The pilot for DeepSpeed ZeRO training: knows before a GPU is touched.
#[derive(Debug, Parser)]
#[command(name = "zeropilot", version, propagate_version = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check DeepSpeed configs: would the engine take them, and does it read what they say?
    Check(Box<CheckCommand>),
    /// Plan a run: the stage, offload and batch that fit these GPUs, and what to fall back to
    Plan(Box<PlanCommand>),
    /// Predict the memory of GPUs and hosts: what fills them, when, and whether it fits
    Memory(Box<MemoryCommand>),
    /// Simulate a step: how long it takes on a cluster, and what it waits for
    Simulate(Box<SimulateCommand>),
    /// Explain a rule: what it finds, why it matters, what to do, with examples
    #[command(after_help = EXIT_CODES)]
    Rule(RuleCommand),
    /// Explain keys, concepts and whole configs: what a setting does and what it costs
    Explain(Box<ExplainCommand>),
    /// Run a training command: check it, watch it, say why it ended, and step down when memory runs out
    #[cfg(target_os = "linux")]
    Run(Box<RunArguments>),
    /// Watch a run or this machine: step, loss, speed, memory of ranks and GPUs, what happened
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Watch(WatchCommand),
    /// List the runs that were recorded
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Runs(RunsCommand),
    /// Make one page of a run: what happened, loss, memory, and what to change
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Report(ReportCommand),
    /// Write a DeepSpeed config: by preset or piece by piece, for the program that will read it
    New(Box<NewCommand>),
    /// Write the JSON Schema of DeepSpeed's config, for editors
    Schema(SchemaCommand),
    /// Serve an editor: findings, explanations, completion and quick fixes, by the Language Server Protocol
    #[command(after_help = EXIT_CODES)]
    Lsp(LspCommand),
    /// Examine this machine: what it lacks for a config, from packages and compilers to GPUs and disks
    Doctor(Box<DoctorCommand>),
    /// Write completions for a shell
    Completions(CompletionsCommand),
    /// Write manual pages into a directory
    #[command(hide = true, after_help = EXIT_CODES)]
    Man(ManCommand),
}

/// What every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// Language of all text; otherwise taken from LC_ALL, LC_MESSAGES or LANG
    #[arg(long, global = true, value_name = "LANGUAGE")]
    pub(crate) lang: Option<LanguageName>,
    /// When to use colours; NO_COLOR is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Use no zeropilot.toml and no [tool.zeropilot] of pyproject.toml
    #[arg(long, global = true)]
    pub(crate) no_settings: bool,
    /// Say nothing but findings
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

/// How results are written.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Findings with their place in the file, why they matter and what to do
    #[default]
    Human,
    /// One line per finding
    Concise,
    /// One JSON array with everything about each file
    Json,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Annotations of GitHub workflows
    Github,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Human => Self::Human,
            OutputFormat::Concise => Self::Concise,
            OutputFormat::Json => Self::Json,
            OutputFormat::Sarif => Self::Sarif,
            OutputFormat::Github => Self::Github,
        }
    }
}

/// The arguments of `zeropilot check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckCommand {
    /// Config files, launch scripts, directories to search for .json and .hjson files, or `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// In directories look for launch scripts, and check the configs they point to
    #[arg(long)]
    pub(crate) job: bool,
    /// How many ranks (GPUs) the run has
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroUsize>,
    /// The engine to check for; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    /// Who reads the file; otherwise guessed: `hf-trainer` if it says "auto", else `deepspeed`
    #[arg(long, value_name = "NAME", value_parser = front_end_parser())]
    pub(crate) front_end: Option<FrontEnd>,
    /// How results are written
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: OutputFormat,
    /// Tell only these rules: codes such as K05, or their letter
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = code)]
    pub(crate) select: Vec<String>,
    /// Do not tell these rules
    #[arg(long, value_name = "CODES", value_delimiter = ',', value_parser = code)]
    pub(crate) ignore: Vec<String>,
    /// Check again whenever a file changes, until Ctrl-C
    #[arg(long, conflicts_with_all = ["fix", "diff"])]
    pub(crate) watch: bool,
    /// The model, to know its widths and how it is stored: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL", conflicts_with = "hidden_size")]
    pub(crate) model: Option<String>,
    /// The checkpoint that the run resumes: does it fit?
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Apply the fixes that keep what the run does, and tell what remains
    #[arg(long)]
    pub(crate) fix: bool,
    /// Show what the fixes would change, and write nothing
    #[arg(long, conflicts_with_all = ["fix", "output_format"])]
    pub(crate) diff: bool,
    /// With --fix or --diff: also the fixes that guess at what was meant
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,
    #[command(flatten)]
    pub(crate) training: TrainingOptions,
}

/// The arguments of `zeropilot rule`.
#[derive(Debug, Args)]
pub(crate) struct RuleCommand {
    /// Codes of rules, such as B03
    #[arg(required_unless_present = "all", value_name = "CODE")]
    pub(crate) codes: Vec<String>,
    /// Every rule there is
    #[arg(long, conflicts_with = "codes")]
    pub(crate) all: bool,
    /// How the pages are written
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: RuleFormat,
}

/// How manual pages are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleFormat {
    /// As text
    #[default]
    Human,
    /// One JSON array
    Json,
}

/// The arguments of `zeropilot explain`.
#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainCommand {
    /// Keys, concepts or config files (`-` for standard input), or `diff A B` for two files; without any, what can be asked
    #[arg(value_name = "TOPIC")]
    pub(crate) topics: Vec<String>,
    /// How many ranks (GPUs) the run has
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroUsize>,
    /// The engine to explain for; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    /// Who reads the file; otherwise guessed: `hf-trainer` if it says "auto", else `deepspeed`
    #[arg(long, value_name = "NAME", value_parser = front_end_parser())]
    pub(crate) front_end: Option<FrontEnd>,
    /// A model with which files are costed: a name of the catalogue, a directory or config.json, or an id of the hub
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The GPUs it is trained on: `8xA100-80G`, `5x44GB`, `4x8xH100`; otherwise those of this machine
    #[arg(long, value_name = "GPUS", requires = "model")]
    pub(crate) gpus: Option<String>,
    /// Tokens of a sequence
    #[arg(long, value_name = "N", default_value_t = 2048, requires = "model", value_parser = clap::value_parser!(u64).range(1..=zeropilot_ask::MOST_TOKENS))]
    pub(crate) seq_len: u64,
    /// Layers are recomputed in backward (gradient checkpointing)
    #[arg(long, requires = "model")]
    pub(crate) grad_checkpointing: bool,
    /// How explanations are written
    #[arg(long, value_name = "FORMAT", default_value = "human")]
    pub(crate) output_format: ExplainFormat,
    /// The same as --output-format json
    #[arg(long, conflicts_with = "output_format")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) training: TrainingOptions,
}

/// The arguments of `zeropilot schema`.
#[derive(Debug, Args)]
#[command(after_help = SCHEMA_EXAMPLES)]
pub(crate) struct SchemaCommand {
    /// The engine whose config is described; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION", visible_alias = "engine")]
    pub(crate) deepspeed_version: Option<String>,
}

/// The arguments of `zeropilot lsp`.
#[derive(Debug, Args)]
pub(crate) struct LspCommand {
    /// Speak over standard input and output, the only way there is; editors pass it
    #[arg(long)]
    pub(crate) stdio: bool,
    /// How many ranks (GPUs) the run has, unless the editor says it
    #[arg(long, value_name = "N")]
    pub(crate) world_size: Option<NonZeroUsize>,
    /// The engine to check for, unless the editor says it; otherwise the installed one, or the newest known
    #[arg(long, value_name = "VERSION")]
    pub(crate) deepspeed_version: Option<String>,
    /// Who reads the files, unless the editor says it; otherwise guessed for each
    #[arg(long, value_name = "NAME", value_parser = front_end_parser())]
    pub(crate) front_end: Option<FrontEnd>,
}

/// The arguments of `zeropilot doctor`.
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorCommand {
    /// The config that shall run here; without it only the machine is looked at
    #[arg(value_name = "CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The interpreter or environment to train in; otherwise the active one, or the first on the path
    #[arg(long, value_name = "PATH")]
    pub(crate) python: Option<PathBuf>,
    /// The model, to hold the memory of the host against what the run needs
    #[arg(long, value_name = "MODEL", requires = "config")]
    pub(crate) model: Option<String>,
    /// The GPUs; otherwise those of this machine
    #[arg(long, value_name = "GPUS", requires = "model")]
    pub(crate) gpus: Option<String>,
    /// Write JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) training: JobOptions,
}

/// How explanations are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// For people
    #[default]
    Human,
    /// One JSON array, an object for each topic
    Json,
}

/// What the training script is told, as far as the user tells us.
#[derive(Debug, Args)]
#[command(
    next_help_heading = "Training arguments, which fill \"auto\" and must agree with the config"
)]
pub(crate) struct TrainingOptions {
    /// Micro batch of one device
    #[arg(long, value_name = "N")]
    pub(crate) per_device_train_batch_size: Option<i64>,
    /// Micro batches per optimizer step
    #[arg(long, value_name = "N")]
    pub(crate) gradient_accumulation_steps: Option<i64>,
    /// Learning rate
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) learning_rate: Option<front_end::Number>,
    /// Weight decay
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) weight_decay: Option<front_end::Number>,
    /// First beta of Adam
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) adam_beta1: Option<front_end::Number>,
    /// Second beta of Adam
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) adam_beta2: Option<front_end::Number>,
    /// Epsilon of Adam
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) adam_epsilon: Option<front_end::Number>,
    /// Gradient norm to clip at
    #[arg(long, value_name = "X", value_parser = number)]
    pub(crate) max_grad_norm: Option<front_end::Number>,
    /// Warm-up: steps if 1 or more, a share of all steps below 1
    #[arg(long, value_name = "X", value_parser = number, allow_negative_numbers = true)]
    pub(crate) warmup_steps: Option<front_end::Number>,
    /// Training steps in all
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<i64>,
    /// Train in bf16
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) bf16: Option<bool>,
    /// Train in fp16
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) fp16: Option<bool>,
    /// Precision given to accelerate
    #[arg(long, value_name = "PRECISION")]
    pub(crate) mixed_precision: Option<Precision>,
    /// The Trainer looks for a batch size that fits
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) auto_find_batch_size: Option<bool>,
    /// Optimizer of the HF Trainer, such as adamw_torch
    #[arg(long, value_name = "NAME")]
    pub(crate) optim: Option<String>,
    /// Scheduler of the HF Trainer, such as cosine
    #[arg(long, value_name = "NAME")]
    pub(crate) lr_scheduler_type: Option<String>,
    /// The Trainer saves the model without the state of the engine
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) save_only_model: Option<bool>,
    /// The Trainer loads the best model when it is done
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) load_best_model_at_end: Option<bool>,
    /// Hidden size of the model, from its config.json
    #[arg(long, value_name = "N")]
    pub(crate) hidden_size: Option<u64>,
}

impl TrainingOptions {
    /// As every front hands them over.
    pub(crate) fn script(&self) -> ScriptArguments {
        ScriptArguments {
            per_device_train_batch_size: self.per_device_train_batch_size,
            gradient_accumulation_steps: self.gradient_accumulation_steps,
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            adam_beta1: self.adam_beta1,
            adam_beta2: self.adam_beta2,
            adam_epsilon: self.adam_epsilon,
            max_grad_norm: self.max_grad_norm,
            warmup_steps: self.warmup_steps,
            max_steps: self.max_steps,
            bf16: self.bf16,
            fp16: self.fp16,
            mixed_precision: self.mixed_precision,
            auto_find_batch_size: self.auto_find_batch_size,
            optim: self.optim.clone(),
            lr_scheduler_type: self.lr_scheduler_type.clone(),
            save_only_model: self.save_only_model,
            load_best_model_at_end: self.load_best_model_at_end,
            hidden_size: self.hidden_size,
        }
    }
}

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot check ds_config.json --world-size 8
  zeropilot check configs/ --front-end hf-trainer --output-format concise
  zeropilot check zero3.json --per-device-train-batch-size 2 --bf16 --hidden-size 4096
  zeropilot check ds_config.json --diff --unsafe-fixes
  cat ds_config.json | zeropilot check - --lang zh

Exit codes: 0 nothing wrong, 1 errors or warnings found (with --diff: fixes to apply), 2 the check could not be done";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  zeropilot explain
  zeropilot explain stage3_max_live_parameters
  zeropilot explain zero3 offload loss-scale
  zeropilot explain ds_config.json --world-size 8
  zeropilot explain diff zero2.json zero3.json

Exit codes: 0 explained, 1 a file has errors or warnings, 2 something could not be explained";

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  zeropilot doctor
  zeropilot doctor ds_config.json --python ~/envs/train
  zeropilot doctor ds_config.json --model qwen3-8b

Exit codes: 0 nothing is missing, 1 errors or warnings, 2 the config could not be read";

pub(crate) const SCHEMA_EXAMPLES: &str = "\
Examples:
  zeropilot schema > deepspeed.schema.json
  zeropilot schema --deepspeed-version 0.16.9 --lang en

Descriptions are in both languages unless --lang names one.

Exit codes: 0 written, 2 not a version";

/// What commands exit with that judge nothing.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done, 2 it could not be done";

fn front_end_parser() -> impl clap::builder::TypedValueParser<Value = FrontEnd> {
    use clap::builder::TypedValueParser as _;
    clap::builder::PossibleValuesParser::new(FrontEnd::ALL.map(FrontEnd::name))
        .try_map(|name| name.parse::<FrontEnd>())
}

/// A number as Python would keep it.
fn number(text: &str) -> Result<front_end::Number, String> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(front_end::Number::Int(whole));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(front_end::Number::Float(number)),
        _ => Err("not a number".to_owned()),
    }
}

/// A code, or the beginning of one.
fn code(text: &str) -> Result<String, String> {
    let code = text.trim().to_uppercase();
    if !code.is_empty() && RULES.iter().any(|rule| rule.code.starts_with(&code)) {
        return Ok(code);
    }
    Err(match nearest_code(text) {
        Some(nearest) => format!("there is no such rule; did you mean {nearest}?"),
        None => "there is no such rule; `zeropilot rule --all` lists them".to_owned(),
    })
}

/// Reads the arguments, with help in the given language.
pub(crate) fn parse(arguments: Vec<OsString>, language: Language) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&definition(language).try_get_matches_from(arguments)?)
}

/// All verbs and options, with their help in a language.
pub(crate) fn definition(language: Language) -> clap::Command {
    // A number below zero is a wrong value, and no option that is not known.
    let values = |argument: clap::Arg| {
        let is_option = argument.get_action().takes_values() && !argument.is_positional();
        argument.allow_negative_numbers(is_option)
    };
    let command = Cli::command().mut_subcommands(|verb| verb.mut_args(values));
    match language {
        Language::English => command,
        Language::Chinese => help_zh::translate(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
        help_zh::translate(Cli::command()).debug_assert();
    }

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(number("3"), Ok(front_end::Number::Int(3)));
        assert_eq!(number("5e-5"), Ok(front_end::Number::Float(5e-5)));
        assert!(number("nan").is_err());
        assert!(number("x").is_err());
    }
}
