//! `zeropilot memory`: from arguments to an answer about GPUs and hosts.

use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{
    Compared, FusedLoss, Memory, MemoryRequest, MethodName, Offload, compare, memory as ask,
};
use zeropilot_cluster::Cluster;
use zeropilot_model::Model;
use zeropilot_step::lower::sees;
use zeropilot_text::{Language, Text};
use zeropilot_view::memory::{self, Fit, MemoryReport};
use zeropilot_view::model::length_note;
use zeropilot_view::{Layout, gpus, problem, talk};

use crate::cluster_source;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::job_source;
use crate::layout::layout;
use crate::model_source;
use crate::options::{FormatOptions, GlobalOptions, JobOptions, MachineOption};
use crate::output::Output;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot memory --model Qwen/Qwen3-8B --gpus 5x44GB --stage 3 --seq-len 4096
  zeropilot memory --model llama-3.1-8b --gpus 8xA100-80G --config ds_config.json
  zeropilot memory --model Qwen3-30B-A3B --gpus 5x44GB --method lora --compare
  zeropilot memory --model t5-3b --gpus 1x24GB --stage 3 --offload --timeline

Exit codes: 0 the run fits or the GPU memory is unknown, 1 the run does not or may not fit, 2 no answer: invalid options or files";

/// The arguments of `zeropilot memory`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MemoryCommand {
    #[command(flatten)]
    job: JobOptions,
    /// Use this DeepSpeed config; if omitted, zeropilot builds one from --stage, --offload and --precision
    #[arg(long, value_name = "FILE", conflicts_with_all = ["stage", "offload", "without_deepspeed"])]
    config: Option<PathBuf>,
    /// Show all stages and offload options side by side
    #[arg(long, conflicts_with_all = ["config", "timeline", "svg", "without_deepspeed"])]
    compare: bool,
    /// Draw a terminal chart of GPU memory during one step
    #[arg(long)]
    timeline: bool,
    /// Write an SVG chart of GPU memory during one step to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: FormatOptions,
    #[command(flatten)]
    machine: MachineOption,
    #[command(flatten)]
    request: MemoryRequest,
}

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
    let layout = layout(command.format.format(), global, language);
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
                Some(fit) if !fit.is_safe() => ExitStatus::Findings,
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
    let idle = without_effect(request, model).into_iter();
    let idle = idle.map(|(option, needs)| talk::no_effect(option, needs.get(language), language));
    // A length that nobody says is cut to what the model takes.
    let said = request.training.seq_len;
    idle.chain(said.and_then(|tokens| length_note(model, tokens, language))).collect()
}

const ENCODER_DECODER: Text = Text::new("an encoder-decoder model", "encoder-decoder 模型");
const DECODER: Text = Text::new("a decoder-only model", "decoder-only 模型");
const SEEING: Text = Text::new("a model with a supported vision tower", "视觉部分受支持的模型");
const ADAPTERS: Text = Text::new("`--method lora`", "`--method lora`");
const QUANTIZED: Text = Text::new("`--method qlora`", "`--method qlora`");
const ANY_STAGE: Text = Text::new("`--stage` 1, 2, 3", "`--stage` 1、2、3");

/// Options that do nothing as they are combined, each with what they would need.
fn without_effect(request: &MemoryRequest, model: &Model) -> Vec<(&'static str, Text)> {
    let training = &request.training;
    let adapts = training.method() != MethodName::Full;
    let is_quantized = training.method() == MethodName::Qlora;
    let has_targets = model.dimensions().is_none_or(|sizes| sizes.decoder_layers.is_some());
    let fuses = training.fused_loss() != FusedLoss::No;
    let offloads = request.offload.is_some_and(|offload| offload != Offload::None);
    [
        (!adapts && training.lora_rank.is_some(), "--lora-rank", ADAPTERS),
        (!adapts && !training.lora_targets.is_empty(), "--lora-targets", ADAPTERS),
        (!is_quantized && training.quantization.is_some(), "--quantization", QUANTIZED),
        (!has_targets && training.target_len.is_some(), "--target-len", ENCODER_DECODER),
        (offloads && request.stage == Some(0), "--offload", ANY_STAGE),
        (fuses && !model.is_decoder_only(), "--fused-loss", DECODER),
        (!sees(model) && training.image.is_some(), "--image", SEEING),
        (!sees(model) && training.images_per_sample.is_some(), "--images-per-sample", SEEING),
        (!sees(model) && training.max_pixels.is_some(), "--max-pixels", SEEING),
    ]
    .into_iter()
    .filter_map(|(is_so, option, needs)| is_so.then_some((option, needs)))
    .collect()
}

/// A question with everything that files and this machine say about it.
pub(crate) struct Prepared {
    /// The model as the user or the job names it.
    pub(crate) name: String,
    pub(crate) model: Model,
    pub(crate) request: MemoryRequest,
}

/// Reads the job, the config, the profile and the model; the GPUs are those of this machine if nobody names any.
pub(crate) fn prepare(
    job: &JobOptions,
    given: &MemoryRequest,
    config: Option<&Path>,
    machine: &MachineOption,
    layout: &Layout,
) -> Result<Prepared, String> {
    let language = layout.language;
    let subject = job_source::read(job, language)?;
    let mut request = MemoryRequest { job: subject.job, ..given.clone() };
    request.config = config.map(|path| read_config(path, language)).transpose()?;
    request.machines = cluster_source::measured(request.machines, machine, language)?;
    engine_version::find(&mut request.training.software);
    // What is wrong with the GPUs is said before a model is looked for.
    request.machines.cluster().map_err(|wrong| problem::memory(&wrong.into(), layout))?;
    let model = model_source::open_as(&subject.model, &job.likeness, language)?;
    model_source::find_others(&mut request.task, &request.job, language)?;
    Ok(Prepared { name: subject.model, model, request })
}

/// A config as it stands in a file.
fn read_config(path: &Path, language: Language) -> Result<WrittenConfig, String> {
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
        let language = self.layout.language;
        let command = self.command;
        let Prepared { name, model, request } = prepare(
            &command.job,
            &command.request,
            command.config.as_deref(),
            &command.machine,
            &self.layout,
        )?;
        let words = |problem| problem::memory(&problem, &self.layout);
        let notes = request_notes(&request, &model, language);
        if self.command.compare {
            let compared = compare(&model, &request).map_err(words)?;
            self.note(&compared.cluster, notes);
            return Ok(self.write_comparison(&name, &compared));
        }
        let memory = ask(&name, model, &request).map_err(words)?;
        self.note(memory.job.cluster(), notes);
        self.write(&memory)?;
        Ok(memory::fit_of(&memory.answer, memory.job.cluster()))
    }

    /// How the GPUs were understood, and what else is to be known.
    fn note(&mut self, cluster: &Cluster, others: Vec<String>) {
        if self.quiet || self.command.format.is_json() {
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
        if self.command.format.is_json() {
            let as_measured = memory.tensors().map_err(lower)?;
            self.output.result(&format!("{:#}\n", memory::json(&report, &as_measured)));
        } else {
            self.output.result(&memory::human(&report, &self.layout));
        }
        if self.command.timeline && !self.command.format.is_json() {
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

    fn write_comparison(&mut self, name: &str, compared: &Compared) -> Option<Fit> {
        if self.command.format.is_json() {
            self.output.result(&format!("{:#}\n", memory::compare_json(compared)));
        } else {
            let language = self.layout.language;
            self.output.result(&memory::comparison_head(name, compared, language));
            self.output.result(&memory::compare(compared, &self.layout));
        }
        let columns = compared.columns.iter();
        let fits = columns.filter_map(|column| memory::fit_of(&column.answer, &compared.cluster));
        // Something to choose is enough.
        fits.min()
    }
}
