//! Fallbacks that somebody planned: from a file, or by the memory model.

use std::num::NonZeroU64;

use serde_json::{Map, Value};
use zeropilot_ask::{Machines, PlanRequest, plan};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_job::TrainingJob;
use zeropilot_model::Model;
use zeropilot_plan::Target;
use zeropilot_run::RunCommand;
use zeropilot_run::fallbacks::{Batch, PlannedFallback};
use zeropilot_text::{Language, tr};
use zeropilot_view::{escaped, problem, talk};

use super::arguments::RunArguments;
use crate::{machine_file, model_source};

/// What a plan says about a run.
#[derive(Default)]
pub(super) struct Planned {
    pub(super) fallbacks: Vec<PlannedFallback>,
    /// Bytes of a device for the choice of the plan.
    pub(super) predicted: Option<u64>,
    /// The model that a written plan is for.
    pub(super) name: Option<String>,
    /// The model that the user names.
    pub(super) model: Option<Model>,
}

pub(super) fn of(
    arguments: &RunArguments,
    command: &RunCommand,
    language: Language,
) -> Result<Planned, String> {
    if let Some(path) = &arguments.plan {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|error| talk::cannot_read(path, error, language))?;
        return from_plan(&text).ok_or_else(|| no_plan(&name, language));
    }
    match (&arguments.model, &arguments.gpus) {
        (Some(model), Some(gpus)) => by_model(arguments, command, (model, gpus), language),
        (Some(model), None) => {
            let model = model_source::open(model, language)?;
            Ok(Planned { model: Some(model), ..Planned::default() })
        }
        _ => Ok(Planned::default()),
    }
}

/// The fallbacks of a plan that was written before. Fallbacks that also ask the script to recompute layers, or for another loss,
/// are left out: a config cannot tell it.
fn from_plan(text: &str) -> Option<Planned> {
    let plan: Value = serde_json::from_str(text).ok()?;
    let choice = &plan["recommended"];
    let of_script = |fallback: &Value| {
        let way = &fallback["strategy"];
        (way["gradient_checkpointing"].as_bool(), way["fused_loss"].as_bool())
    };
    let fallbacks = plan["fallbacks"].as_array()?.iter();
    let fallbacks = fallbacks.filter(|fallback| of_script(fallback) == of_script(choice));
    let planned = |fallback: &Value| {
        let number = |key: &str| fallback["strategy"][key].as_u64();
        let batch = number("micro_batch").zip(number("gradient_accumulation_steps"));
        let batch = batch.map(|(micro, accumulation)| Batch { micro, accumulation });
        Some(PlannedFallback { config: fallback["config"].as_object()?.clone(), batch })
    };
    let fallbacks = fallbacks.filter_map(planned).collect();
    let predicted = choice["memory"]["device"]["expected"].as_u64();
    let name = plan["model"].as_str().map(str::to_owned);
    Some(Planned { fallbacks, predicted, name, model: None })
}

fn no_plan(name: &str, language: Language) -> String {
    let name = escaped(name);
    tr!(
        language,
        "error: {name} is not a plan with fallbacks\n  help: write one with `zeropilot plan --json --model … --gpus … > plan.json`",
        "错误：{name} 不是带降级方案的规划\n  建议：用 `zeropilot plan --json --model … --gpus … > plan.json` 生成"
    )
}

fn by_model(
    arguments: &RunArguments,
    command: &RunCommand,
    (model, gpus): (&str, &str),
    language: Language,
) -> Result<Planned, String> {
    let config = command.read_config();
    let target = match command.front_end {
        Some(FrontEnd::HfTrainer) => Target::HfTrainer,
        Some(FrontEnd::Accelerate) => Target::Accelerate,
        _ => Target::DeepSpeed,
    };
    let machines = machine_file::add(Machines::with_gpus(gpus), None, language)?;
    let problem = |problem| problem::planning(&problem, language);
    let world = machines.cluster().map_err(|wrong| problem(wrong.into()))?.world_size();
    let request = PlanRequest {
        machines,
        global_batch: config.as_ref().and_then(|config| global_batch(config, world)),
        training: arguments.training(),
        job: TrainingJob { config: None, ..command.job.clone() },
        target: Some(target),
        ..PlanRequest::default()
    };
    let said = command.job.grad_checkpointing.as_ref();
    let recomputes = arguments.grad_checkpointing || said.is_some_and(|said| said.value);
    let opened = model_source::open(model, language)?;
    let plan = plan(model, &opened, &request).map_err(problem)?.plan;
    let predicted = plan.fitting.first().map(|choice| choice.answer.device().expected().0);
    let given = config.as_ref().map_or(0, zeropilot_run::fallbacks::stage);
    let lower = plan.fitting.iter().filter(|way| u64::from(way.way.shape.stage.number()) > given);
    let fallbacks = lower
        .chain(&plan.fallbacks)
        .filter(|fallback| fallback.way.work.checkpointing == recomputes)
        .map(|fallback| PlannedFallback {
            config: fallback.recipe.config(),
            batch: Some(Batch {
                micro: fallback.way.work.micro_batch,
                accumulation: fallback.way.work.accumulation,
            }),
        })
        .collect();
    Ok(Planned { fallbacks, predicted, name: None, model: Some(opened) })
}

fn global_batch(config: &Map<String, Value>, world: u64) -> Option<NonZeroU64> {
    let number = |key: &str| config.get(key).and_then(Value::as_u64);
    let product = || {
        let micro = number("train_micro_batch_size_per_gpu")?;
        micro.checked_mul(number("gradient_accumulation_steps").unwrap_or(1))?.checked_mul(world)
    };
    NonZeroU64::new(number("train_batch_size").or_else(product)?)
}
