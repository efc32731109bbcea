//! `zeropilot simulate`: from arguments to a step on a cluster.

pub(crate) mod arguments;

use std::path::Path;

use zeropilot_ask::{Bill, MemoryProblem, SimulateRequest, simulate as ask};
use zeropilot_lint::Language;
use zeropilot_step::lower::Lowered;
use zeropilot_step::memory::Answer;
use zeropilot_view::memory::{self, Fit};
use zeropilot_view::simulate::{self as words, SimulateReport};
use zeropilot_view::{Format, Layout, gpus, problem, talk};

use self::arguments::{SimulateCommand, range};
use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::memory::{ended, read_config, request_notes};
use crate::model_source;
use crate::output::Output;

/// Columns of a timeline where there is no terminal to ask.
const WIDTH: usize = 100;

/// Simulates a step and says how long it takes.
pub(crate) fn run(
    command: &SimulateCommand,
    global: &GlobalOptions,
    language: Language,
) -> ExitStatus {
    let format = if command.json { Format::Json } else { Format::Human };
    let layout = layout(format, global, language);
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
        let scale = self.command.scale.as_deref();
        let scale = scale.map(|text| range(text).ok_or_else(|| words::bad_scale(text, language)));
        let config = self.command.job.config.as_deref();
        let config = config.map(|path| read_config(path, language)).transpose()?;
        let gpus = cluster_source::gpus(self.command.gpus.as_deref(), language)?;
        let request = SimulateRequest {
            job: self.command.request(gpus, config),
            scale: scale.transpose()?,
            strong: self.command.strong,
        };
        let problem = |problem| problem::simulating(&problem, &self.layout);
        // What is wrong with the GPUs is said before a model is looked for.
        let machines = request.job.machines.cluster();
        machines.map_err(|wrong| problem(MemoryProblem::from(wrong).into()))?;
        let model = model_source::open(&self.command.model, language)?;
        let notes = request_notes(&request.job, &model, language);
        let simulated = ask(&self.command.model, model, &request).map_err(problem)?;
        let answer = Answer::to(&simulated.job.question());
        let answer = answer.map_err(|error| talk::lower_error(&error, language))?;
        let fit = memory::fit_of(&answer, simulated.job.cluster());
        if !self.quiet && !self.command.json {
            let note = gpus::layout_note(&simulated.job.cluster().gpus, language);
            note.into_iter().chain(notes).for_each(|note| self.output.say(&note));
        }
        let report = SimulateReport { fit, ..SimulateReport::of(&simulated, bill) };
        self.write(&report, simulated.workload.lowered())?;
        Ok(fit)
    }

    fn bill(&self) -> Result<Option<Bill>, String> {
        let language = self.layout.language;
        let bill = self.command.bill.request().map(|request| request.read()).transpose();
        bill.map_err(|bad| words::bad_cost(&bad, language))
    }

    fn write(&mut self, report: &SimulateReport<'_>, lowered: &Lowered) -> Result<(), String> {
        if self.command.json {
            self.output.result(&format!("{:#}\n", words::json(report)));
        } else {
            self.output.result(&words::human(report, &self.layout));
            if !report.scaling.is_empty() {
                self.output.result(&format!("\n{}", words::scale(report, &self.layout)));
            }
        }
        if self.command.step_timeline && !self.command.json {
            let columns = self.layout.width.unwrap_or(WIDTH).clamp(40, 160) - 26;
            let drawn = words::timeline(&report.spans(), columns, &self.layout);
            self.output.result(&format!("\n{drawn}"));
        }
        let language = self.layout.language;
        if let Some(path) = &self.command.step_svg {
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
