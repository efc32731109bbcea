//! `zeropilot new`: from arguments to a config on disk.

pub(crate) mod file;
pub(crate) mod help_zh;
pub(crate) mod knobs;

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::{CreateProblem, Draft, Machines, Wishes, create};
use zeropilot_plan::{ModelSize, Preset, Recipe, Request, Tier, Zero};
use zeropilot_text::Language;
use zeropilot_view::creation::{self, Created, CreationProblem};
use zeropilot_view::{Layout, problem, talk};

use crate::color;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::model_source;
use crate::options::{FormatOptions, GlobalOptions};
use crate::output::Output;
use knobs::KnobOptions;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot new --stage 3 --micro-batch 2 --grad-accum 32 --offload --world-size 4 -o ds_zero3.json
  zeropilot new zero2 --for hf-trainer
  zeropilot new zero3 --for deepspeed --model qwen3-8b --world-size 8 --global-batch 256 --micro-batch 2
  zeropilot new zero3_nvme --nvme-path /local_nvme/job1 --fp16 --initial-scale-power 12
  zeropilot new zero3 --tiers -o ds.json
  zeropilot new zero2 -o - | zeropilot check -

Exit codes: 0 config written, 2 rejected options or a file that cannot be written";

/// The arguments of `zeropilot new`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NewCommand {
    #[command(flatten)]
    wishes: Wishes,
    /// Write to this file, or to standard output with `-`; if omitted, to a file named after the stage
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Write three configs, small, medium and large, to compare them
    #[arg(long)]
    tiers: bool,
    #[command(flatten)]
    format: FormatOptions,
    /// Set bucket sizes for this model: built-in name, directory, config.json or Hugging Face ID
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Set the GPUs, such as `8xH100` or `2x8xV100-SXM2-32GB`: they determine the world size; GPUs without bf16 support use fp16
    #[arg(long, value_name = "GPUS", conflicts_with = "world_size")]
    gpus: Option<String>,
    /// Check the config for this DeepSpeed version; if omitted, the installed version, or the newest known version
    #[arg(long, value_name = "VERSION")]
    deepspeed_version: Option<String>,
    #[command(flatten)]
    knobs: KnobOptions,
}

/// Where a config goes.
enum Place {
    StandardOutput,
    File(PathBuf),
}

/// A config with where it goes.
struct Placed {
    draft: Draft,
    place: Place,
}

/// Why nothing was written.
enum Failure {
    /// No config could be created; the string is the name of the file that would have been written.
    Problem(String, CreateProblem),
    File(String, CreationProblem),
    /// Another failure, with its message.
    Said(String),
}

/// Writes a config and says so.
pub(crate) fn run(command: &NewCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let mut output = Output::new(false);
    match make(command, language) {
        Ok(drafts) => {
            report(&drafts, command, global, language, &mut output);
            output.flush();
            ExitStatus::Clean
        }
        Err(failure) => {
            explain(failure, command, global, language, &mut output);
            ExitStatus::Failure
        }
    }
}

fn make(command: &NewCommand, language: Language) -> Result<Vec<Placed>, Failure> {
    let (version, _) = engine_version::choose(command.deepspeed_version.as_deref())
        .map_err(|error| Failure::Said(talk::unknown_version(&error, language)))?;
    let request = request(command, language)?;
    let drafts = create(&request, version, command.tiers).map_err(|problem| {
        let by_stage = || request.recipe().map(|recipe| default_name(&recipe)).unwrap_or_default();
        let path = command.output.clone().unwrap_or_else(by_stage);
        Failure::Problem(path.to_string_lossy().into_owned(), problem)
    })?;
    let placed = placed(drafts, command)?;
    write(&placed, command.force)?;
    Ok(placed)
}

/// What the arguments ask for; fails if the model cannot be used.
fn request(command: &NewCommand, language: Language) -> Result<Request, Failure> {
    let model = command.model.as_deref().map(|name| model_size(name, language)).transpose()?;
    let request = wishes(command, language)?.request(model);
    let request = request.map_err(|problem| Failure::Said(format!("error: {problem}")))?;
    Ok(Request { knobs: command.knobs.0.clone(), ..request })
}

/// What is wished for, on the GPUs that are named.
fn wishes(command: &NewCommand, language: Language) -> Result<Wishes, Failure> {
    let mut wishes = command.wishes.clone();
    let Some(gpus) = &command.gpus else { return Ok(wishes) };
    let cluster = Machines::with_gpus(gpus).cluster();
    let cluster = cluster.map_err(|error| Failure::Said(problem::machines(&error, language)))?;
    wishes.world_size = NonZeroU64::new(cluster.world_size());
    let lacks_bf16 = cluster.gpus.device.accelerator().is_some_and(|card| card.lacks_bf16());
    let is_said = wishes.bf16.is_some() || wishes.fp16 || wishes.fp32;
    wishes.fp16 |= lacks_bf16 && !is_said;
    Ok(wishes)
}

fn model_size(name: &str, language: Language) -> Result<ModelSize, Failure> {
    let model = model_source::open(name, language).map_err(Failure::Said)?;
    ModelSize::of(&model)
        .ok_or_else(|| Failure::File(name.to_owned(), CreationProblem::ModelWithoutWidth))
}

fn placed(drafts: Vec<Draft>, command: &NewCommand) -> Result<Vec<Placed>, Failure> {
    let is_stdout = command.output.as_deref() == Some(Path::new("-"));
    if command.tiers && is_stdout && !command.format.is_json() {
        return Err(Failure::File("-".to_owned(), CreationProblem::TiersOnStandardOutput));
    }
    let place = |draft: &Draft| {
        let path = command.output.clone().unwrap_or_else(|| default_name(&draft.recipe));
        match draft.tier {
            _ if is_stdout => Place::StandardOutput,
            None => Place::File(path),
            Some(tier) => Place::File(tier_name(&path, tier)),
        }
    };
    Ok(drafts.into_iter().map(|draft| Placed { place: place(&draft), draft }).collect())
}

/// The preset's name, as people call their files.
fn default_name(recipe: &Recipe) -> PathBuf {
    let offload = recipe.zero.optimizer_offload().map(|offload| offload.device());
    let preset = Preset::ALL
        .into_iter()
        .find(|preset| (preset.stage(), preset.offload()) == (recipe.zero.stage(), offload));
    let name = match (preset, &recipe.zero) {
        (Some(preset), _) => preset.name().to_owned(),
        (None, Zero::Stage0) => "zero0".to_owned(),
        (None, zero) => format!("zero{}_offload", zero.stage().number()),
    };
    PathBuf::from(format!("ds_{name}.json"))
}

/// `ds.json` becomes `ds_small.json`.
fn tier_name(path: &Path, tier: Tier) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy()));
    path.with_file_name(format!("{stem}_{}{}", tier.name(), extension.unwrap_or_default()))
}

impl Place {
    fn name(&self) -> String {
        match self {
            Self::StandardOutput => "-".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }
}

/// All files or none, as far as a file system can promise that.
fn write(drafts: &[Placed], force: bool) -> Result<(), Failure> {
    let failure = |place: &Place| {
        let name = place.name();
        move |problem| Failure::File(name, problem)
    };
    let mut pending = Vec::new();
    for Placed { place, draft } in drafts {
        if let Place::File(path) = place {
            pending.push((place, file::prepare(path, &draft.text, force).map_err(failure(place))?));
        }
    }
    for (place, pending) in pending {
        pending.publish(force).map_err(failure(place))?;
    }
    Ok(())
}

fn report(
    drafts: &[Placed],
    command: &NewCommand,
    global: &GlobalOptions,
    language: Language,
    output: &mut Output,
) {
    let names: Vec<Option<String>> = drafts
        .iter()
        .map(|Placed { place, .. }| match place {
            Place::StandardOutput => None,
            Place::File(_) => Some(place.name()),
        })
        .collect();
    let created: Vec<Created<'_>> = drafts
        .iter()
        .zip(&names)
        .map(|(Placed { draft, .. }, name)| Created {
            recipe: &draft.recipe,
            path: name.as_deref(),
            tier: draft.tier,
            model: command.model.as_deref(),
        })
        .collect();
    let is_stdout = names.iter().any(Option::is_none);
    if command.format.is_json() {
        output.result(&creation::json(&created));
    } else if is_stdout {
        drafts.iter().for_each(|placed| output.result(&placed.draft.text));
        if !global.quiet {
            output.say(creation::words(&created, language).trim_matches('\n'));
        }
    } else if !global.quiet {
        output.result(&creation::words(&created, language));
    }
}

fn explain(
    failure: Failure,
    command: &NewCommand,
    global: &GlobalOptions,
    language: Language,
    output: &mut Output,
) {
    let words = match failure {
        Failure::Problem(_, CreateProblem::Refused(refusals)) if command.format.is_json() => {
            output.result(&creation::refusals_json(&refusals, language));
            output.flush();
            return;
        }
        Failure::Problem(name, problem) => {
            let color = color::for_stdout(global.color);
            let layout = Layout { language, color, ..Layout::default() };
            problem::creating(&problem, &name, &layout)
        }
        Failure::File(name, problem) => problem.words(&name, language),
        Failure::Said(words) => words,
    };
    output.say(words.trim_end());
}
