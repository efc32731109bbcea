//! `zeropilot simulate`: from arguments to a step on a cluster.

use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::{Bill, BillRequest, SimulateRequest, simulate as ask};
use zeropilot_step::lower::Lowered;
use zeropilot_text::Language;
use zeropilot_view::memory::Fit;
use zeropilot_view::simulate::{self as words, SimulateReport};
use zeropilot_view::{Layout, gpus, problem, talk};

use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::memory::{Prepared, ended, prepare, request_notes};
use crate::options::{FormatOptions, GlobalOptions, JobOptions, MachineOption};
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot simulate --model Qwen/Qwen3-8B --gpus 8xA100-80G --stage 3 --seq-len 4096
  zeropilot simulate --model llama-3.1-70b --gpus 4x8xH100 --network 8xNDR --timeline
  zeropilot simulate --model llama-3.1-8b --gpus 8xH100 --scale 8..1024 --grad-checkpointing
  zeropilot simulate --model qwen3-8b --gpus 2x8xA100-80G --tokens 10B --cost 2.5/gpu-hour

Exit codes: 0 answered, 1 the run does not or may not fit, 2 no answer: invalid options or files";

/// The arguments of `zeropilot simulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateCommand {
    #[command(flatten)]
    job: JobOptions,
    /// Use this DeepSpeed config; if omitted, zeropilot builds one from --stage, --offload and --precision
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stage", "offload", "without_deepspeed"])]
    config: Option<PathBuf>,
    /// Draw a timeline of the step in the terminal
    #[arg(long)]
    timeline: bool,
    /// Write an SVG timeline of the step to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the step as a trace for chrome://tracing and Perfetto
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    #[command(flatten)]
    bill: Option<BillRequest>,
    #[command(flatten)]
    format: FormatOptions,
    #[command(flatten)]
    machine: MachineOption,
    #[command(flatten)]
    request: SimulateRequest,
}

/// Columns of a timeline where there is no terminal to ask.
const WIDTH: usize = 100;

/// Simulates a step and says how long it takes.
pub(crate) fn run(
    command: &SimulateCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    let mut session = Session { command, layout, output: &mut output, quiet: global.quiet };
    let answer = session.answer();
    ended(answer, &mut output)
}

struct Session<'a> {
    command: &'a SimulateCommand,
    layout: Layout,
    output: &'a mut Output,
    quiet: bool,
}

impl Session<'_> {
    fn answer(&mut self) -> Result<Option<Fit>, String> {
        let language = self.layout.language;
        let bill = self.bill()?;
        let asked = &self.command.request;
        let command = self.command;
        let Prepared { name, model, request: job } = prepare(
            &command.job,
            &asked.job,
            command.config.as_deref(),
            &command.machine,
            &self.layout,
        )?;
        let request = SimulateRequest { job, ..asked.clone() };
        let problem = |problem| problem::simulating(&problem, &self.layout);
        let notes = request_notes(&request.job, &model, language);
        let simulated = ask(&name, model, &request).map_err(problem)?;
        if !self.quiet && !self.command.format.is_json() {
            let note = gpus::layout_note(&simulated.job.cluster().gpus, language);
            note.into_iter().chain(notes).for_each(|note| self.output.say(&note));
        }
        let report = SimulateReport::of(&simulated, bill);
        self.write(&report, simulated.workload.lowered())?;
        Ok(report.fit)
    }

    fn bill(&self) -> Result<Option<Bill>, String> {
        let language = self.layout.language;
        let bill = self.command.bill.as_ref().map(BillRequest::read).transpose();
        bill.map_err(|bad| words::bad_cost(&bad, language))
    }

    fn write(&mut self, report: &SimulateReport<'_>, lowered: &Lowered) -> Result<(), String> {
        if self.command.format.is_json() {
            self.output.result(&format!("{:#}\n", words::json(report)));
        } else {
            self.output.result(&words::human(report, &self.layout));
            if !report.scaling.is_empty() {
                self.output.result(&format!("\n{}", words::scale(report, &self.layout)));
            }
        }
        if self.command.timeline && !self.command.format.is_json() {
            let columns = self.layout.width.unwrap_or(WIDTH).clamp(40, 160) - 26;
            let drawn = words::timeline(&report.spans(), columns, &self.layout);
            self.output.result(&format!("\n{drawn}"));
        }
        let language = self.layout.language;
        if let Some(path) = &self.command.svg {
            save(path, &words::svg(report, &report.spans(), language), language)?;
        }
        if let Some(path) = &self.command.trace {
            let trace = words::trace(lowered, &report.spans(), language);
            save(path, &trace.to_string(), language)?;
        }
        Ok(())
    }
}

fn save(path: &Path, text: &str, language: Language) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| talk::cannot_write(path, &error, language))
}
