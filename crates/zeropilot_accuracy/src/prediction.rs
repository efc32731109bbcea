//! What zeropilot itself says to a question.

use serde_json::{Value, json};
use zeropilot_cluster::{Cluster, Device, Gpus, Layout};
use zeropilot_config::resolve::{Accelerator, Circumstances, ResolvedConfig, Source, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_step::cuda::{Counted, Gradients, Settings, Term, replay};
use zeropilot_step::family::micro_step;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe;
use zeropilot_step::memory::{self, Answer};
use zeropilot_step::tape::{AttentionForm, Kernels, Options, Trace};
use zeropilot_step::zero::Place;
use zeropilot_units::{Bytes, Estimate};

use crate::judgement::Predicted;
use crate::question::{Question, Runner};

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
        [] => answer.slack,
        _ => slack_of_lengths(question, &job, &answer)?,
    };
    let beside = |counted: Counted| -> Estimate {
        let of = |term: &&Term| term.counted == counted;
        answer.terms.iter().filter(of).map(|term| term.bytes).sum()
    };
    let on_gpu = &answer.on_gpu;
    let tensors = on_gpu.most(Place::Device) + on_gpu.buffers + on_gpu.batch;
    let allocated = Estimate::exact(tensors) + beside(Counted::ByPyTorch);
    let reserved = allocated + slack;
    Ok(Predicted { allocated, reserved, device: reserved + beside(Counted::ByDriver) })
}

fn recipe(question: &Question) -> Recipe {
    let attention =
        if question.eager_attention { AttentionForm::Eager } else { AttentionForm::Flash };
    Recipe {
        method: question.method.clone(),
        checkpointing: question.checkpointing,
        attention,
        loss: match (question.fused_loss, question.shifted_logits) {
            (true, _) => LossHead::Fused,
            (false, true) => LossHead::ShiftedCopy,
            (false, false) => LossHead::Model,
        },
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
    if question.runner == Runner::DeepSpeed {
        // Named in the config, as the published scripts do, it becomes DeepSpeed's own.
        config["optimizer"] = json!({ "type": "AdamW" });
    }
    config
}

fn resolved(question: &Question) -> Result<ResolvedConfig, String> {
    let text = config(question).to_string();
    let document = parse_json(&text).map_err(|error| format!("{error:?}"))?;
    let circumstances = Circumstances {
        version: EngineVersion::NEWEST,
        world_size: usize::try_from(question.ranks).map_err(|error| error.to_string())?,
        source: Source::Dictionary,
        accelerator: Accelerator::Cuda,
    };
    let resolution = resolve(document.root(), circumstances);
    let reasons = resolution.problems;
    resolution.resolved.ok_or_else(|| format!("the config is refused: {reasons:?}"))
}

/// What the allocator reserves beyond tensors where the lengths vary, by replaying some of them. The longest comes last:
/// what shorter ones have left in the cache does not serve it.
fn slack_of_lengths(
    question: &Question,
    job: &memory::Question<'_>,
    answer: &Answer,
) -> Result<Estimate, String> {
    let trace = |length: u64| {
        let recipe = Recipe { sequence: length, ..job.recipe.clone() };
        let options =
            Options { kernels: Kernels::Cuda, attention: recipe.attention, ..Options::default() };
        let workload = memory::Question { recipe: &recipe, ..*job }.workload();
        workload.map(|workload| micro_step(workload.lowered().program(), options))
    };
    let lengths = question.lengths.iter().copied().chain([question.sequence]);
    let micro_steps: Vec<Trace> =
        lengths.map(trace).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let states = answer.on_gpu.states.after_step.iter();
    let resident =
        states.filter(|(_, place, _)| *place == Place::Device).map(|(_, _, bytes)| bytes);
    let gradients = if question.stage >= 2 { Gradients::Bucketed } else { Gradients::Kept };
    let replayed = replay(&micro_steps, resident, gradients, Settings::default());
    let slack = replayed.map_err(|failure| format!("{failure:?}"))?.slack();
    // With luck in the order everything fits together, without it twice as much is left over.
    Ok(Estimate::new(Bytes(0), slack, Bytes(slack.0.saturating_mul(2))))
}
