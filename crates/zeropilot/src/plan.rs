//! `zeropilot plan`: from a model and GPUs to a config that fits.

use std::path::{Path, PathBuf};

use clap::Args;
use zeropilot_ask::{Changes, Objective, PlanRequest, plan as ask};
use zeropilot_plan::Fitting;
use zeropilot_text::Language;
use zeropilot_view::model::length_note;
use zeropilot_view::plan::{self as words, PlanReport, changes};
use zeropilot_view::{Format, Layout, problem, talk};

use crate::cluster_source;
use crate::engine_version;
use crate::exit_status::ExitStatus;
use crate::job_source;
use crate::layout::layout;
use crate::model_source;
use crate::new::file;
use crate::options::{FormatOptions, GlobalOptions, JobOptions, MachineOption};
use crate::output::Output;
use crate::plan_diff;
use crate::progress::turning;

pub(crate) const EXAMPLES: &str = "\
Examples:
  zeropilot plan --model Qwen/Qwen3-8B --gpus 5x44GB --seq-len 4096
  zeropilot plan --model llama-3.1-70b --gpus 8xA100-80G --host-ram 2TiB --global-batch 64
  zeropilot plan --model Qwen3-30B-A3B --gpus 5x44GB --method lora --for hf-trainer -o ds.json
  zeropilot plan --model llama-3.1-8b --gpus 8xH100 --max-seq-len
  zeropilot plan train.sh --gpus A100-80G --diff > strategy.patch
  zeropilot plan --model qwen3-8b --gpus 4x8xH100 --objective cost --tokens 10B --cost 2.5/gpu-hour

Exit codes: 0 a strategy fits, 1 none fits, 2 no answer: invalid options or files";

/// The arguments of `zeropilot plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanCommand {
    #[command(flatten)]
    job: JobOptions,
    /// Write the recommended config to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
    /// Print a patch that changes the job's files to the recommended strategy
    #[arg(long, requires = "job", conflicts_with_all = ["output_format", "json"])]
    diff: bool,
    #[command(flatten)]
    format: FormatOptions,
    #[command(flatten)]
    machine: MachineOption,
    #[command(flatten)]
    request: PlanRequest,
}

/// Plans and says so.
pub(crate) fn run(command: &PlanCommand, global: &GlobalOptions, language: Language) -> ExitStatus {
    let layout = layout(command.format.format(), global, language);
    let mut output = Output::new(layout.color);
    match answer(command, &layout, &mut output) {
        Ok(true) => ExitStatus::Clean,
        Ok(false) => ExitStatus::Findings,
        Err(problem) => {
            output.say(&problem);
            ExitStatus::Failure
        }
    }
}

/// Whether something fits.
fn answer(command: &PlanCommand, layout: &Layout, output: &mut Output) -> Result<bool, String> {
    let language = layout.language;
    let subject = job_source::read(&command.job, language)?;
    if command.diff && subject.places.is_none() {
        return Err(changes::no_job(&subject.model, language));
    }
    let mut request = command.request.clone();
    request.job = subject.job.clone();
    request.machines = cluster_source::measured(request.machines, &command.machine, language)?;
    engine_version::find(&mut request.training.software);
    let problem = |problem| problem::planning(&problem, language);
    // What is wrong with the GPUs is said before a model is looked for.
    request.machines.cluster().map_err(|wrong| problem(wrong.into()))?;
    let model = model_source::open_as(&subject.model, &command.job.likeness, language)?;
    model_source::find_others(&mut request.task, &request.job, language)?;
    let turning = (request.objective == Some(Objective::Cost))
        .then(|| turning(layout.quiet, words::offers_take_long(language)))
        .flatten();
    let planned = ask(&subject.model, &model, &request).map_err(problem);
    if let Some(turning) = turning {
        turning.finish_and_clear();
    }
    let planned = planned?;
    let path = command.output.as_deref();
    if let (Some(path), Some(choice)) = (path, planned.choice()) {
        write(path, choice, command.force, language)?;
    }
    let job = &subject.job;
    let found = planned.choice().zip(subject.places.as_ref()).map(|(choice, places)| {
        plan_diff::placed(job, places, Changes::of(job, choice, planned.cluster.world_size()))
    });
    if let (true, Some(places), Some(found)) = (command.diff, &subject.places, &found) {
        output.result(&plan_diff::text(job, places, found, language));
        output.flush();
        if found.is_empty() && !layout.quiet {
            output.say(&changes::nothing(language));
        }
        return Ok(true);
    }
    let config = path.map_or("ds_config.json".to_owned(), |path| path.display().to_string());
    let commands = planned.commands(&config);
    let written = path.and(planned.choice()).map(|_| config.as_str());
    let mut report = PlanReport::of(&planned, &commands, written);
    if let (Some(places), Some(found)) = (&subject.places, &found) {
        report = report.with_changes(job, found, plan_diff::is_possible(job, places, found));
    }
    let result = if command.format.is_json() {
        format!("{:#}\n", words::json(&report))
    } else {
        words::human(&report, layout)
    };
    output.result(&result);
    output.flush();
    let is_talking = layout.format == Format::Human && !layout.quiet;
    let length = length_note(&model, planned.length, language);
    length.filter(|_| is_talking).into_iter().for_each(|note| output.say(&note));
    if is_talking && path.is_none() && planned.choice().is_some() && report.changes.is_none() {
        output.say(&talk::not_written_yet(&config, language));
    }
    Ok(planned.choice().is_some())
}

fn write(path: &Path, choice: &Fitting, force: bool, language: Language) -> Result<(), String> {
    let text = format!("{:#}\n", serde_json::Value::Object(choice.recipe.config()));
    file::prepare(path, &text, force)
        .and_then(|pending| pending.publish(force))
        .map_err(|problem| problem.words(&path.display().to_string(), language))
}
