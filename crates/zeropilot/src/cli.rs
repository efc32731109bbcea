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

/// Check, plan and predict DeepSpeed ZeRO runs before you use a GPU.
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
    /// Check DeepSpeed configs: does DeepSpeed accept them, and does it use every key?
    Check(Box<CheckCommand>),
    /// Plan a run: the stage, offload and batch that fit these GPUs, and what to fall back to
    Plan(Box<PlanCommand>),
    /// Predict the memory of GPUs and hosts: what fills them, when, and whether it fits
    Memory(Box<MemoryCommand>),
    /// Simulate a step: how long it takes on a cluster, and what it waits for
    Simulate(Box<SimulateCommand>),
    /// Diagnose a log: why the run went out of memory (CUDA OOM), and what to change first
    Diagnose(Box<DiagnoseCommand>),
    /// Explain a rule: what it finds, why it matters, what to do, with examples
    #[command(after_help = EXIT_CODES)]
    Rule(RuleCommand),
    /// List rules, all or those that contain a word
    Rules(ListCommand),
    /// List advisories: known defects of DeepSpeed, PyTorch and Hugging Face releases; show one in full by its name
    Advisories(ListCommand),
    /// List built-in models, all or those that contain a word
    Models(ListCommand),
    /// List known GPUs and how --gpus names them, all or those that contain a word
    Gpus(ListCommand),
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
    /// Compare predictions with your own runs: memory and step time, and what follows for later predictions
    #[cfg(target_os = "linux")]
    Accuracy(AccuracyCommand),
    /// Make one page of a run: what happened, loss, memory, and what to change
    #[command(after_help = EXIT_CODES)]
    #[cfg(target_os = "linux")]
    Report(ReportCommand),
    /// Write a DeepSpeed config: by preset or piece by piece, for the program that will read it
    New(Box<NewCommand>),
    /// Write the JSON Schema of DeepSpeed's config, for editors
    Schema(SchemaCommand),
    /// Serve an editor: findings, explanations, completion and quick fixes, by the Language Server Protocol
    #[command(after_help = lsp::AFTER_HELP)]
    Lsp(LspCommand),
    /// Serve an agent: check, plan, memory and other verbs as tools, by the Model Context Protocol (MCP)
    #[command(after_help = EXIT_CODES)]
    Mcp,
    /// Examine this machine: what it lacks for a config, from packages and compilers to GPUs and disks
    Doctor(Box<DoctorCommand>),
    /// Measure this machine with your PyTorch and DeepSpeed, so that predictions use its own speeds
    Calibrate(CalibrateCommand),
    /// Write completions for a shell
    Completions(CompletionsCommand),
    /// Write manual pages into a directory
    #[command(hide = true, after_help = EXIT_CODES)]
    Man(ManCommand),
}
