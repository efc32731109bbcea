//! `zeropilot memory`: from arguments to an answer about GPUs and hosts.

pub(crate) mod arguments;

use std::path::Path;

use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{Compared, Memory, MemoryRequest, compare, memory as ask};
use zeropilot_cluster::Cluster;
use zeropilot_lint::Language;
use zeropilot_model::Model;
use zeropilot_view::memory::{self, Fit, MemoryReport};
use zeropilot_view::model::length_note;
use zeropilot_view::{Format, Layout, gpus, problem, talk};

use self::arguments::MemoryCommand;
use crate::cli::GlobalOptions;
use crate::cluster_source;
use crate::exit_status::ExitStatus;
use crate::layout::layout;
use crate::model_source;
use crate::output::Output;

/// Columns of a timeline where there is no terminal to ask.
const WIDTH: usize = 100;
/// Stretches of a picture.
const STRETCHES: usize = 400;

/// Answers the question and says whether it fits.
pub(crate) fn run(
    command: &MemoryCommand,
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

/// How an answer ends that says whether something fits.
pub(crate) fn ended(answer: Result<Option<Fit>, String>, output: &mut Output) -> ExitStatus {
    match answer {
        Ok(fit) => {
            output.flush();
            match fit {
                Some(fit) if !fit.is_expected() => ExitStatus::Findings,
                _ => ExitStatus::Clean,
            }
        }
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

/// What does nothing in a request, and what the model was not made for.
pub(crate) fn request_notes(
    request: &MemoryRequest,
    model: &Model,
    language: Language,
) -> Vec<String> {
    let idle = arguments::without_effect(request).into_iter();
    let idle = idle.map(|(option, needs)| talk::no_effect(option, needs, language));
    idle.chain(length_note(model, request.training.seq_len, language)).collect()
}

/// A config as it stands in a file.
pub(crate) fn read_config(path: &Path, language: Language) -> Result<WrittenConfig, String> {
    let bytes = std::fs::read(path).map_err(|error| talk::cannot_read(path, error, language))?;
    Ok(WrittenConfig { name: path.display().to_string(), bytes })
}

struct Session<'a> {
    command: &'a MemoryCommand,
    layout: Layout,
    output: &'a mut Output,
    quiet: bool,
}

impl Session<'_> {
    fn answer(&mut self) -> Result<Option<Fit>, String> {
        let config = self.command.job.config.as_deref();
        let config = config.map(|path| read_config(path, self.layout.language)).transpose()?;
        let gpus = cluster_source::gpus(self.command.gpus.as_deref(), self.layout.language)?;
        let request = self.command.request(gpus, config);
        let words = |problem| problem::memory(&problem, &self.layout);
        // What is wrong with the GPUs is said before a model is looked for.
        request.machines.cluster().map_err(|problem| words(problem.into()))?;
        let model = model_source::open(&self.command.model, self.layout.language)?;
        let notes = request_notes(&request, &model, self.layout.language);
        if self.command.compare {
            let compared = compare(&model, &request).map_err(words)?;
            self.note(&compared.cluster, notes);
            return Ok(self.write_comparison(&compared));
        }
        let memory = ask(&self.command.model, model, &request).map_err(words)?;
        self.note(memory.job.cluster(), notes);
        self.write(&memory)?;
        Ok(memory::fit_of(&memory.answer, memory.job.cluster()))
    }

    /// How the GPUs were understood, and what else is to be known.
    fn note(&mut self, cluster: &Cluster, others: Vec<String>) {
        if self.quiet || self.command.json {
            return;
        }
        let language = self.layout.language;
        let capacity = cluster.capacity();
        let capacity_note =
            capacity.and_then(|known| gpus::capacity_note(&cluster.gpus, &known, language));
        let of_gpus = [capacity_note, gpus::layout_note(&cluster.gpus, language)];
        of_gpus.into_iter().flatten().chain(others).for_each(|note| self.output.say(&note));
    }

    fn write(&mut self, memory: &Memory) -> Result<(), String> {
        let language = self.layout.language;
        let lower = |error| talk::lower_error(&error, language);
        let report = MemoryReport::from(memory);
        if self.command.json {
            let as_measured = memory.tensors().map_err(lower)?;
            self.output.result(&format!("{:#}\n", memory::json(&report, &as_measured)));
        } else {
            self.output.result(&memory::human(&report, &self.layout));
        }
        if self.command.timeline && !self.command.json {
            let columns = self.layout.width.unwrap_or(WIDTH).clamp(40, 160) - 14;
            let limit = memory.job.cluster().capacity().map(|capacity| capacity.bytes.expected());
            let stretches = memory.stretches(columns).map_err(lower)?;
            let drawn = memory::timeline(&stretches, limit, &self.layout);
            self.output.result(&format!("\n{drawn}"));
        }
        if let Some(path) = &self.command.svg {
            let stretches = memory.stretches(STRETCHES).map_err(lower)?;
            std::fs::write(path, memory::svg(&report, &stretches, language))
                .map_err(|error| talk::cannot_write(path, &error, language))?;
        }
        Ok(())
    }

    fn write_comparison(&mut self, compared: &Compared) -> Option<Fit> {
        let (columns, capacity) = (&compared.columns, compared.capacity());
        if self.command.json {
            self.output.result(&format!("{:#}\n", memory::compare_json(columns, capacity)));
        } else {
            let language = self.layout.language;
            self.output.result(&memory::comparison_head(&self.command.model, compared, language));
            self.output.result(&memory::compare(columns, capacity, &self.layout));
        }
        let fits = columns.iter().filter_map(|column| {
            capacity.map(|capacity| memory::fit(column.answer.device(), capacity))
        });
        // Something to choose is enough.
        fits.max_by_key(|fit| fit.is_expected())
    }
}
