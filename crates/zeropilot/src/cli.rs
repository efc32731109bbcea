//! The commands.

use clap::{Parser, Subcommand};

#[cfg(target_os = "linux")]
use crate::accuracy::AccuracyCommand;
use crate::calibrate::CalibrateCommand;
use crate::check::CheckCommand;
use crate::diagnose::DiagnoseCommand;
use crate::doctor::DoctorCommand;
use crate::explain::ExplainCommand;
use crate::listing::ListCommand;
use crate::lsp::{self, LspCommand};
use crate::memory::MemoryCommand;
use crate::new::NewCommand;
use crate::options::{EXIT_CODES, GlobalOptions};
use crate::plan::PlanCommand;
use crate::rule::RuleCommand;
#[cfg(target_os = "linux")]
use crate::run::arguments::RunArguments;
#[cfg(target_os = "linux")]
use crate::runs::{ReportCommand, RunsCommand};
use crate::schema::SchemaCommand;
use crate::shell_files::{CompletionsCommand, ManCommand};
use crate::simulate::SimulateCommand;
#[cfg(target_os = "linux")]
use crate::watch::WatchCommand;

/// Plan, predict, check and supervise DeepSpeed ZeRO training.
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
    /// Check DeepSpeed configs: whether DeepSpeed accepts them and uses every key
    Check(Box<CheckCommand>),
    /// Plan a run: find the stage, offload and batch size that fit these GPUs, with fallbacks
    Plan(Box<PlanCommand>),
    /// Predict the GPU and host memory that a run needs: parts, peak, and whether the run fits
    Memory(Box<MemoryCommand>),
    /// Predict the time of a training step, and show what slows it down
    Simulate(Box<SimulateCommand>),
    /// Diagnose a log: why the run ran out of GPU or host memory (CUDA OOM), and what to change first
    Diagnose(Box<DiagnoseCommand>),
    /// Explain a rule: the problem it finds, the reason, the fix, and examples
    #[command(after_help = EXIT_CODES)]
    Rule(RuleCommand),
    /// List rules, or only those whose entry contains a word
    Rules(ListCommand),
    /// List advisories: known defects of DeepSpeed, PyTorch and Hugging Face releases; give a name to show one in full
    Advisories(ListCommand),
    /// List built-in models, or only those whose entry contains a word
    Models(ListCommand),
    /// List known GPUs and their names for --gpus, or only those whose entry contains a word
    Gpus(ListCommand),
    /// Explain config keys, concepts and whole configs: effects and costs of settings
    Explain(Box<ExplainCommand>),
    /// Run and supervise a training command: check it first, report why it ended, restart it, try fallbacks after OOM
    #[cfg(target_os = "linux")]
    Run(Box<RunArguments>),
    /// Watch a run or this machine: step, loss, speed, GPU and host memory, events
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Watch(WatchCommand),
    /// List recorded runs
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Runs(RunsCommand),
    /// Compare predicted GPU memory and step time with your own recorded runs
    #[cfg(target_os = "linux")]
    Accuracy(AccuracyCommand),
    /// Write an HTML report of a run: events, loss, GPU and host memory, and what to change
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Report(ReportCommand),
    /// Write a DeepSpeed config from a preset or from options, for the framework that reads it
    New(Box<NewCommand>),
    /// Write the JSON Schema of the DeepSpeed config, for editors
    Schema(SchemaCommand),
    /// Start the language server (LSP) for editors: findings, explanations, completion and quick fixes
    #[command(after_help = lsp::AFTER_HELP)]
    Lsp(LspCommand),
    /// Start the Model Context Protocol (MCP) server for agents: check, plan, memory and other commands as tools
    #[command(after_help = EXIT_CODES)]
    Mcp,
    /// Check whether this machine has everything a config needs: packages, compilers, GPUs, host memory, disks
    Doctor(Box<DoctorCommand>),
    /// Measure this machine with your PyTorch and DeepSpeed, so that predictions use its own speeds
    Calibrate(CalibrateCommand),
    /// Write shell completions
    Completions(CompletionsCommand),
    /// Write manual pages into a directory
    #[command(hide = true, after_help = EXIT_CODES)]
    Man(ManCommand),
}
