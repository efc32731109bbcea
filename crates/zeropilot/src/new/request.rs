//! What the arguments ask for.

use zeropilot_lint::Language;
use zeropilot_plan::{
    ActivationCheckpointing, AsyncIo, BatchRequest, DynamicLossScale, HyperParameters, Link,
    LossScale, LossScaleRequest, ModelSize, OffloadRequest, Precision, Request, Steps,
};
use zeropilot_view::creation::CreationProblem;

use super::Failure;
use super::options::{NewCommand, OffloadOptions, PrecisionOptions, SectionOptions};
use crate::model_source;

/// The wish; fails if the model cannot be used.
pub(super) fn from(command: &NewCommand, language: Language) -> Result<Request, Failure> {
    let training = &command.training;
    Ok(Request {
        target: command.target,
        preset: command.preset,
        stage: command.stage,
        offload: offload(&command.offload),
        precisions: precisions(&command.precision),
        loss_scale: loss_scale(&command.precision),
        batch: BatchRequest {
            micro: command.batch.micro_batch,
            accumulation: command.batch.grad_accum,
            world: command.batch.world_size,
            global: command.batch.global_batch,
        },
        optimizer: training.optimizer.unwrap_or_default(),
        hyper_parameters: HyperParameters {
            learning_rate: training.learning_rate,
            betas: training.betas,
            epsilon: training.eps,
            weight_decay: training.weight_decay,
        },
        scheduler: training.scheduler.unwrap_or_default(),
        steps: Steps {
            warmup: training.warmup_steps,
            total: training.total_steps,
            shape: training.warmup_type.map(Into::into),
        },
        clipping: training.clip,
        checkpointing: checkpointing(&command.sections),
        async_io: async_io(&command.offload),
        steps_per_print: command.sections.steps_per_print.map(u64::from),
        knobs: command.knobs.0.clone(),
        model: command.model.as_deref().map(|name| model(name, language)).transpose()?,
        link: command.link_bandwidth.map(|bytes| Link { bandwidth: bytes.0 as f64 }),
    })
}

fn offload(options: &OffloadOptions) -> OffloadRequest {
    OffloadRequest {
        all: options.offload,
        optimizer: options.offload_optimizer.map(|name| name.wish()).unwrap_or_default(),
        parameters: options.offload_param.map(|name| name.wish()).unwrap_or_default(),
        nvme_path: options.nvme_path.clone(),
        pin_memory: options.pin_memory,
    }
}

fn precisions(options: &PrecisionOptions) -> Vec<Precision> {
    let all = [
        (options.bf16, Precision::Bf16),
        (options.fp16, Precision::Fp16(LossScale::default())),
        (options.fp32, Precision::Fp32),
    ];
    all.into_iter().filter_map(|(is_given, precision)| is_given.then_some(precision)).collect()
}

fn loss_scale(options: &PrecisionOptions) -> LossScaleRequest {
    LossScaleRequest {
        fixed: options.loss_scale,
        dynamic: DynamicLossScale {
            initial_scale_power: options.initial_scale_power,
            window: options.loss_scale_window,
            hysteresis: options.hysteresis,
            minimum: options.min_loss_scale,
        },
    }
}

/// Any of its options asks for the section.
fn checkpointing(options: &SectionOptions) -> Option<ActivationCheckpointing> {
    let section = ActivationCheckpointing {
        partition_activations: options.partition_activations,
        cpu_checkpointing: options.cpu_checkpointing,
        number_checkpoints: options.number_checkpoints.map(u64::from),
        synchronize_checkpoint_boundary: options.synchronize_checkpoint_boundary,
        profile: options.profile_checkpoints,
    };
    let is_asked_for =
        options.activation_checkpointing || section != ActivationCheckpointing::default();
    is_asked_for.then_some(section)
}

fn async_io(options: &OffloadOptions) -> AsyncIo {
    AsyncIo {
        block_size: options.aio_block_size.map(|bytes| bytes.0),
        queue_depth: options.aio_queue_depth.map(u64::from),
        intra_op_parallelism: options.aio_intra_op_parallelism.map(u64::from),
        single_submit: options.aio_single_submit,
        overlap_events: options.aio_overlap_events,
    }
}

fn model(name: &str, language: Language) -> Result<ModelSize, Failure> {
    let model = model_source::open(name, language).map_err(Failure::Said)?;
    ModelSize::of(&model)
        .ok_or_else(|| Failure::File(name.to_owned(), CreationProblem::ModelWithoutWidth))
}
