//! What zeropilot itself says to a question.

use serde_json::{Value, json};
use zeropilot_cluster::{AttentionKernel, Capacity, Cluster, Device, Gpus, Layout};
use zeropilot_config::resolve::{Accelerator, Circumstances, ResolvedConfig, Source, resolve};
use zeropilot_config::syntax::parse_json;
use zeropilot_step::cuda::{Before, Gradients, Settings, replay};
use zeropilot_step::family::micro_step;
use zeropilot_step::lower::Recipe;
use zeropilot_step::memory::{self, Answer};
use zeropilot_step::tape::{AttentionForm, Kernels, Options, Trace};
use zeropilot_step::zero::{Engine, Loading, Place};
use zeropilot_units::{Bytes, ElementSize};

use crate::judgement::Predicted;
use crate::question::Question;

/// The answer to a question.
///
/// # Errors
///
/// If the config would be refused or the model cannot be lowered: the reason.
pub fn predict(question: &Question) -> Result<Predicted, String> {
    let resolved = resolved(question)?;
    let model = question.model.model().map_err(|error| error.to_string())?;
    let recipe = recipe(question);
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
fn config(question: &Question) -> Value {
    let mut zero = json!({ "stage": question.stage });
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
    if question.software.engine == Engine::DeepSpeed {
        // Named in the config, as the published scripts do, it becomes DeepSpeed's own.
        config["optimizer"] = json!({ "type": "AdamW" });
    }
    config
}

fn resolved(question: &Question) -> Result<ResolvedConfig, String> {
    let text = config(question).to_string();
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
        workload.map(|workload| micro_step(workload.lowered().program(), options))
    };
    let states = answer.on_gpu.states.after_step.iter();
    let resident =
        states.filter(|(_, place, _)| *place == Place::Device).map(|(_, _, bytes)| bytes).collect();
    let before = Before { resident, ..Before::default() };
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
        let replayed = replay(&micro_steps, &before, gradients, Settings::default());
        slacks.push(replayed.map_err(|failure| format!("{failure:?}"))?.slack());
    }
    slacks.sort_unstable();
    Ok(slacks.get(slacks.len() / 2).copied().unwrap_or_default())
}
