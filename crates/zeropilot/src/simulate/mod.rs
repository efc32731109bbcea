//! `zeropilot simulate`: from arguments to a step on a cluster.

pub(crate) mod arguments;

use std::path::Path;

use zeropilot_cluster::{Cluster, DiskRates, Network, Outlook};
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_lint::Language;
use zeropilot_model::Model;
use zeropilot_step::lower::{Lowered, Recipe};
use zeropilot_step::memory::Question;
use zeropilot_step::program::StepProgram;
use zeropilot_step::time::{
    Machine, Scaling, ScalingPoint, Span, Spans, estimate, observe, scaling,
};
use zeropilot_step::traffic::Traffic;
use zeropilot_view::simulate::{self as words, Bill, SimulateReport};
use zeropilot_view::{Format, Layout, gpus, talk};

use self::arguments::{SimulateCommand, amount, price, range, rates};
use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::memory::arguments::MemoryCommand;
use crate::memory::{Configs, recipe};
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
    let memory = command.about_memory();
    let mut session =
        Session { command, memory: &memory, layout, output: &mut output, quiet: global.quiet };
    match session.answer() {
        Ok(()) => {
            output.flush();
            ExitStatus::Clean
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

struct Session<'a> {
    command: &'a SimulateCommand,
    memory: &'a MemoryCommand,
    layout: Layout,
    output: &'a mut Output,
    quiet: bool,
}

/// What is simulated.
struct Job<'a> {
    model: &'a Model,
    recipe: &'a Recipe,
    resolved: &'a ResolvedConfig,
    micro_batch: u64,
}

impl Session<'_> {
    fn answer(&mut self) -> Result<(), String> {
        let language = self.layout.language;
        let bill = self.bill()?;
        let cluster = self.cluster()?;
        let model = model_source::open(&self.command.model, language)?;
        let recipe = recipe(&self.command.training);
        let (resolved, micro_batch) = self.configs().config(&model, &cluster)?;
        let zero = resolved.zero();
        let question = Question {
            model: &model,
            recipe: &recipe,
            resolved: &resolved,
            zero: &zero,
            micro_batch,
            cluster: &cluster,
            rank: None,
        };
        let workload = question.workload().map_err(|e| talk::lower_error(&e, language))?;
        let program = question.step_program(&workload);
        let time = estimate(&program, &cluster, resolved.precision())
            .ok_or_else(|| words::no_speed(language))?;
        let job = Job { model: &model, recipe: &recipe, resolved: &resolved, micro_batch };
        let points = self.scaling(&job, &cluster, &program)?;
        let has_nodes = cluster.gpus.layout.nodes > 1;
        let network = cluster.network.or_else(|| Network::usual(&cluster)).filter(|_| has_nodes);
        let report = SimulateReport {
            name: &self.command.model,
            question,
            program: &program,
            time: &time,
            traffic: &Traffic::of(&program),
            network,
            bill,
            scaling: &points,
        };
        self.write(&report, workload.lowered())
    }

    fn configs(&self) -> Configs<'_> {
        Configs { command: self.memory, layout: self.layout }
    }

    fn bill(&self) -> Result<Option<Bill>, String> {
        let language = self.layout.language;
        let Some(text) = &self.command.tokens else { return Ok(None) };
        let tokens = amount(text).ok_or_else(|| words::bad_cost("--tokens", text, language))?;
        let per_gpu_hour = match &self.command.cost {
            Some(text) => {
                Some(price(text).ok_or_else(|| words::bad_cost("--cost", text, language))?)
            }
            None => None,
        };
        Ok(Some(Bill { tokens, per_gpu_hour }))
    }

    fn cluster(&mut self) -> Result<Cluster, String> {
        let language = self.layout.language;
        let mut cluster =
            cluster_source::open(&self.command.gpus, self.command.host_ram, language)?;
        if let Some(text) = &self.command.network {
            let network = text.parse();
            cluster.network =
                Some(network.map_err(|error| words::bad_network(text, &error, language))?);
        }
        if let Some(text) = &self.command.nvme {
            let (read_gb_s, write_gb_s) =
                rates(text).ok_or_else(|| words::bad_nvme(text, language))?;
            cluster.disk = Some(DiskRates { read_gb_s, write_gb_s });
        }
        if !self.quiet && !self.command.json {
            let note = gpus::layout_note(&cluster.gpus, language);
            note.into_iter().for_each(|note| self.output.say(&note));
        }
        Ok(cluster)
    }

    /// The same on other numbers of GPUs of the same kind.
    fn scaling(
        &self,
        job: &Job<'_>,
        cluster: &Cluster,
        program: &StepProgram,
    ) -> Result<Vec<ScalingPoint>, String> {
        let Some(text) = &self.command.scale else { return Ok(Vec::new()) };
        let range = range(text).ok_or_else(|| words::bad_scale(text, self.layout.language))?;
        let kind = if self.command.strong { Scaling::Strong } else { Scaling::Weak };
        let batch = (job.micro_batch, program.accumulation);
        let usual = cluster.gpus.layout.gpus_per_node;
        let points = scaling(range, kind, batch, |gpus, accumulation| {
            let mut cluster = cluster.clone();
            let each = if gpus.is_multiple_of(usual) { usual } else { gpus.min(usual) };
            cluster.gpus.layout.gpus_per_node = each;
            cluster.gpus.layout.nodes = gpus / each;
            let mut memory = self.command.about_memory();
            memory.training.grad_accum = Some(accumulation);
            let configs = Configs { command: &memory, layout: self.layout };
            let resolved = match &self.command.config {
                // A file keeps its own batch.
                Some(_) => job.resolved.clone(),
                None => configs.config(job.model, &cluster).ok()?.0,
            };
            let zero = resolved.zero();
            let question = Question {
                model: job.model,
                recipe: job.recipe,
                resolved: &resolved,
                zero: &zero,
                micro_batch: job.micro_batch,
                cluster: &cluster,
                rank: None,
            };
            let program = question.step_program(&question.workload().ok()?);
            let machine = Machine::of(&cluster, resolved.precision(), Outlook::Expected)?;
            Some(zeropilot_step::time::simulate(&program, &machine))
        });
        Ok(points)
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
            let drawn = words::timeline(&spans(report), columns, &self.layout);
            self.output.result(&format!("\n{drawn}"));
        }
        let language = self.layout.language;
        if let Some(path) = &self.command.step_svg {
            save(path, &words::svg(report, &spans(report), language), language)?;
        }
        if let Some(path) = &self.command.trace {
            let trace = words::trace(lowered, &spans(report), language);
            save(path, &trace.to_string(), language)?;
        }
        Ok(())
    }
}

/// Every moment of the step as it is expected.
fn spans(report: &SimulateReport<'_>) -> Vec<Span> {
    let precision = report.question.resolved.precision();
    let machine = Machine::of(report.question.cluster, precision, Outlook::Expected);
    let mut spans = Spans::default();
    if let Some(machine) = machine {
        observe(report.program, &machine, &mut spans);
    }
    spans.0
}

fn save(path: &Path, text: &str, language: Language) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| talk::cannot_write(path, &error, language))
}
