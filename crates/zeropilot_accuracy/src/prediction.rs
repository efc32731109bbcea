//! What zeropilot itself says to a question.

use serde_json::{Value, json};
use zeropilot_cluster::{Cluster, Gpus};
use zeropilot_config::resolve::{Accelerator, Circumstances, ResolvedConfig, Source, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::Model;
use zeropilot_step::cuda::{Counted, Gradients, Machine, Settings, replay};
use zeropilot_step::family::micro_step;
use zeropilot_step::lower::{Conditions, Lowered, Recipe};
use zeropilot_step::memory::{Counting, Prediction};
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
    let options = Options {
        kernels: Kernels::Cuda,
        attention: match question.eager_attention {
            true => AttentionForm::Eager,
            false => AttentionForm::Flash,
        },
        ..Options::default()
    };
    let conditions = Conditions::of(&resolved, question.micro_batch, options);
    let recipe = Recipe {
        method: question.method.clone(),
        checkpointing: question.checkpointing,
        ..Recipe::full(question.sequence)
    };
    let lowered = Lowered::new(&model, &recipe, conditions).map_err(|error| error.to_string())?;
    let zero = resolved.zero();
    let rank = lowered.rank(&resolved, &zero, question.ranks, 0);
    let prediction = Prediction::new(&lowered, &rank, Counting::default());
    let tensors = prediction.most(Place::Device) + prediction.buffers + prediction.batch;
    // The longest comes last: what shorter ones have left in the cache does not serve it.
    let mut micro_steps = other_lengths(question, &model, &recipe, conditions)?;
    micro_steps.push(micro_step(lowered.program(), conditions.options));
    let slack = slack(question, &micro_steps, &prediction)?;
    Ok(with_terms(question, tensors, slack))
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

/// Micro steps on shorter sequences.
fn other_lengths(
    question: &Question,
    model: &Model,
    recipe: &Recipe,
    conditions: Conditions,
) -> Result<Vec<Trace>, String> {
    let trace = |length: &u64| {
        let shorter = Recipe { sequence: *length, ..recipe.clone() };
        let lowered = Lowered::new(model, &shorter, conditions);
        lowered.map(|lowered| micro_step(lowered.program(), conditions.options))
    };
    let traces: Result<Vec<Trace>, _> = question.lengths.iter().map(trace).collect();
    traces.map_err(|error| error.to_string())
}

/// What the allocator reserves beyond tensors.
fn slack(
    question: &Question,
    micro_steps: &[Trace],
    prediction: &Prediction,
) -> Result<Bytes, String> {
    let resident = prediction.states.after_step.iter();
    let on_device = resident.filter(|(_, place, _)| *place == Place::Device);
    let gradients = if question.stage >= 2 { Gradients::Bucketed } else { Gradients::Kept };
    let resident = on_device.map(|(_, _, bytes)| bytes);
    let replayed = replay(micro_steps, resident, gradients, Settings::default());
    replayed.map(|replayed| replayed.slack()).map_err(|failure| format!("{failure:?}"))
}

/// Tensors with everything that lies beside them.
fn with_terms(question: &Question, tensors: Bytes, slack: Bytes) -> Predicted {
    let machine = machine(question);
    let of = |counted: Counted| -> Estimate {
        let terms = machine.terms().into_iter().filter(|term| term.counted == counted);
        terms.map(|term| term.bytes).sum()
    };
    let allocated = Estimate::exact(tensors) + of(Counted::ByPyTorch);
    // At best everything fits together; twice what the replay leaves over is allowed for what it does not replay.
    let reserved = allocated + Estimate::new(Bytes(0), slack, Bytes(slack.0.saturating_mul(2)));
    Predicted { allocated, reserved, device: reserved + of(Counted::ByDriver) }
}

fn machine(question: &Question) -> Machine {
    let unknown = || format!("1x{}x1GB", question.ranks).parse::<Gpus>().ok();
    match question.gpus.or_else(unknown) {
        Some(gpus) => Machine::new(&Cluster::new(gpus), 0),
        None => Machine {
            vendor: None,
            capability: None,
            fast_link: true,
            nodes: 1,
            ranks: question.ranks,
            more_groups: 0,
        },
    }
}
