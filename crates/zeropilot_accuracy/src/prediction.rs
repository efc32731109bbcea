//! What zeropilot itself says to a question.

use std::sync::Arc;

use serde_json::{Value, json};
use zeropilot_cluster::{AttentionKernel, Capacity, Cluster, Device, Gpus, Layout};
use zeropilot_config::resolve::{Accelerator, Circumstances, ResolvedConfig, Source, resolve};
use zeropilot_config::syntax::parse_json;
use zeropilot_model::{Model, PartKind};
use zeropilot_step::cuda::{Before, Gradients, Settings, replay};
use zeropilot_step::lower::{Method, Recipe};
use zeropilot_step::memory::{self, Answer};
use zeropilot_step::tape::{AttentionForm, Kernels, Options, Trace};
use zeropilot_step::task::{
    Critic, Frozen, Generation, Generator, Objective, Ppo, Processing, Role, Task,
};
use zeropilot_step::zero::{Engine, Loading, Place};
use zeropilot_units::{Bytes, ElementSize};

use crate::judgement::Predicted;
use crate::question::Question;
use crate::recipe::Buckets;

/// The answer to a question.
///
/// # Errors
///
/// If the config would be refused or the model cannot be lowered: the reason.
pub fn predict(question: &Question) -> Result<Predicted, String> {
    let model = model(question)?;
    let resolved = resolved(question, sizes(question, &model))?;
    let recipe = Recipe { task: task(question, &model)?, ..recipe(question) };
    let cluster = Cluster::new(gpus(question));
    let zero = resolved.zero();
    let job = memory::Question {
        model: &model,
        recipe: &recipe,
        resolved: &resolved,
        zero: &zero,
        micro_batch: question.micro_batch,
        cluster: &cluster,
        rank: None,
    };
    let answer = Answer::to(&job).map_err(|error| error.to_string())?;
    let slack = match question.lengths[..] {
        [] => answer.slack.expected(),
        _ => slack_of_lengths(question, &job, &answer)?,
    };
    let allocated = answer.allocated().expected();
    let driver = answer.device().expected().saturating_sub(answer.reserved().expected());
    let reserved = within_card(question, allocated, allocated + slack, driver);
    Ok(Predicted { allocated, reserved, device: reserved + driver })
}

/// PyTorch gives cached blocks back when the card is full: as long as tensors fit, no more is reserved than the card has.
fn within_card(question: &Question, allocated: Bytes, reserved: Bytes, driver: Bytes) -> Bytes {
    let capacity = question.gpus.and_then(|gpus| Capacity::of(gpus.device));
    let Some(capacity) = capacity else { return reserved };
    let most = capacity.bytes.expected().saturating_sub(driver);
    if allocated > most { reserved } else { reserved.min(most) }
}

/// The model as it is trained.
fn model(question: &Question) -> Result<Model, String> {
    let model = question.model.model().map_err(|error| error.to_string())?;
    let model = match question.freezes_vision {
        true => model.freeze_part(PartKind::Vision).freeze_part(PartKind::Projector),
        false => model,
    };
    match question.job.as_ref().map(|job| job.objective) {
        Some(Objective::Reward) => model.as_reward_model().ok_or_else(|| "no head".to_owned()),
        _ => Ok(model),
    }
}

/// What it is trained for. Where `"auto"` is filled in for the trained model, frozen ones have DeepSpeed's defaults.
fn task(question: &Question, model: &Model) -> Result<Task, String> {
    let Some(job) = &question.job else { return Ok(Task::default()) };
    let is_full = question.method == Method::Full;
    let zero = resolved(question, None)?.zero();
    let is_filled = question.software.buckets == Buckets::Swift && question.stage == 3;
    let zero = is_filled.then_some(zero);
    let frozen = |role, model| Frozen {
        role,
        model,
        zero: zero.clone(),
        has_optimizer: false,
        keeps_cache: role == Role::Teacher && !question.software.is_swift_gkd,
    };
    let ppo = match job.objective {
        Objective::Ppo(ppo) => Some(ppo),
        _ => None,
    };
    let judge = ppo.map(|_| model.as_reward_model().map(Arc::new).ok_or("no head")).transpose()?;
    let mut others = Vec::new();
    if job.has_reference && is_full {
        others.push(frozen(Role::Reference, Arc::new(model.clone())));
    }
    if let Some(teacher) = job.teacher {
        let teacher = teacher.model().map_err(|error| error.to_string())?;
        others.push(frozen(Role::Teacher, Arc::new(teacher)));
    }
    others.extend(judge.clone().map(|judge| frozen(Role::Reward, judge)));
    // ms-swift's defaults: 64 completions at once, learned from four times, sampled with a temperature.
    let generation = ppo.map(|Ppo { completion, .. }| Generation {
        micro_batches: question.accumulation,
        at_once: Some(64),
        prompt: question.sequence.saturating_sub(completion),
        completion,
        keeps_logits: true,
        every_micro_step: false,
        steps: 4,
        scores: false,
        processing: Processing::Temperature,
        by: Generator::Model { gathers: true },
    });
    Ok(Task {
        objective: job.objective,
        frozen: others,
        adapters_off: job.has_reference && !is_full,
        critic: judge.map(|model| Critic { model, as_policy: true }),
        completion: ppo.map(|ppo| ppo.completion),
        generation,
    })
}

/// Sizes in the config that are not DeepSpeed's own.
fn sizes(question: &Question, model: &Model) -> Option<Value> {
    match (question.software.buckets, question.stage) {
        (Buckets::Default, _) => None,
        (Buckets::Swift, 3) => {
            let hidden = model.dimensions()?.hidden_size;
            Some(json!({
                "reduce_bucket_size": hidden * hidden,
                "stage3_prefetch_bucket_size": hidden * hidden * 9 / 10,
                "stage3_param_persistence_threshold": 10 * hidden,
            }))
        }
        (Buckets::Swift, _) => {
            let bucket = 200_000_000;
            Some(json!({ "reduce_bucket_size": bucket, "allgather_bucket_size": bucket }))
        }
    }
}

fn recipe(question: &Question) -> Recipe {
    let software = &question.software;
    let attention = match question.attention {
        Some(AttentionKernel::Latest) => AttentionForm::Flash3,
        Some(_) => AttentionForm::Flash,
        None => AttentionForm::Eager,
    };
    Recipe {
        method: question.method.clone(),
        checkpointing: question.checkpointing,
        attention,
        loss: software.loss,
        loading: software.is_built_whole.then_some(Loading::Whole(ElementSize::Two)),
        adapters_in_fp32: software.adapters_in_fp32,
        optimizer: question.optimizer,
        engine: software.engine,
        autocast: software.autocast,
        layer_kernels: software.layer_kernels,
        quantized_product: software.quantized_product,
        expandable_segments: software.expandable_segments,
        ..Recipe::full(question.sequence)
    }
}

/// The GPUs, or as many of an unknown kind.
fn gpus(question: &Question) -> Gpus {
    let layout = Layout { nodes: 1, gpus_per_node: question.ranks, stated: false };
    question.gpus.unwrap_or(Gpus { layout, device: Device::Unknown })
}

/// The config the run most likely had.
fn config(question: &Question, sizes: Option<Value>) -> Value {
    let mut zero = sizes.unwrap_or_else(|| json!({}));
    zero["stage"] = json!(question.stage);
    if let Some(overlap) = question.software.overlap_comm {
        zero["overlap_comm"] = json!(overlap);
    }
    let on_host = json!({ "device": "cpu", "pin_memory": true });
    if question.offload_optimizer {
        zero["offload_optimizer"] = on_host.clone();
    }
    if question.offload_parameters {
        zero["offload_param"] = on_host;
    }
    let precision = if question.fp16 { "fp16" } else { "bf16" };
    let mut config = json!({
        "train_micro_batch_size_per_gpu": question.micro_batch,
        "gradient_accumulation_steps": question.accumulation,
        precision: { "enabled": true },
        "zero_optimization": zero,
    });
    if question.software.engine == Engine::DeepSpeed && !question.software.brings_optimizer {
        // Named in the config, as the published scripts do, it becomes DeepSpeed's own.
        config["optimizer"] = json!({ "type": "AdamW" });
    }
    config
}

fn resolved(question: &Question, sizes: Option<Value>) -> Result<ResolvedConfig, String> {
    let text = config(question, sizes).to_string();
    let document = parse_json(&text).map_err(|error| format!("{error:?}"))?;
    let circumstances = Circumstances {
        version: question.software.deepspeed,
        world_size: usize::try_from(question.ranks).map_err(|error| error.to_string())?,
        source: Source::Dictionary,
        accelerator: Accelerator::Cuda,
    };
    let resolution = resolve(document.root(), circumstances);
    let reasons = resolution.problems;
    resolution.resolved.ok_or_else(|| format!("the config is refused: {reasons:?}"))
}

/// What the allocator reserves beyond tensors where the lengths vary, by replaying some of them in several orders: the
/// longest of them comes when what shorter ones have left in the cache does not serve it.
fn slack_of_lengths(
    question: &Question,
    job: &memory::Question<'_>,
    answer: &Answer,
) -> Result<Bytes, String> {
    let trace = |length: u64| {
        let recipe = Recipe { sequence: length, ..job.recipe.clone() };
        let options = recipe.options(Options { kernels: Kernels::Cuda, ..Options::default() });
        let workload = memory::Question { recipe: &recipe, ..*job }.workload();
        workload.map(|workload| workload.lowered().trace(options))
    };
    let states = answer.on_gpu.states.after_step.iter();
    let resident =
        states.filter(|(_, place, _)| *place == Place::Device).map(|(_, _, bytes)| bytes).collect();
    let before = Before { resident, ..Before::default() };
    let expandable_segments = question.software.expandable_segments;
    let settings = Settings { expandable_segments, ..Settings::default() };
    let gradients = if question.stage >= 2 { Gradients::Bucketed } else { Gradients::Kept };
    let mut slacks: Vec<Bytes> = Vec::new();
    for lengths in &question.lengths {
        let micro_steps: Vec<Trace> = lengths
            .iter()
            .copied()
            .chain([question.sequence])
            .map(trace)
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        let replayed = replay(&micro_steps, &before, gradients, settings);
        slacks.push(replayed.map_err(|failure| format!("{failure:?}"))?.slack());
    }
    slacks.sort_unstable();
    Ok(slacks.get(slacks.len() / 2).copied().unwrap_or_default())
}
