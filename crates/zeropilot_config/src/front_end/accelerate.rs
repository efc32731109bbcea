//! accelerate without the Trainer: plugin, `Accelerator`, `prepare`.

use super::arguments::{Number, OptimizerInCode, SchedulerInCode};
use super::plugin;
use super::prepare::{self, Given};
use super::run::{Run, Step, Surroundings};
use crate::syntax::Node;

/// Takes the config through.
pub(super) fn run(root: &Node, surroundings: &Surroundings<'_>) -> Run {
    let mut run = Run::new(root);
    // Whatever stopped it is in the notes.
    let _ = walk(&mut run, surroundings);
    run
}

fn walk(run: &mut Run, surroundings: &Surroundings<'_>) -> Step {
    let arguments = &surroundings.arguments.accelerate;
    let plugin_arguments = &surroundings.arguments.plugin;
    plugin::read_stage_and_offload(run)?;
    plugin::construct(run, plugin_arguments)?;
    plugin::set_mixed_precision(
        run,
        arguments.mixed_precision,
        plugin_arguments.rocm == Some(true),
    )?;
    let given = given(run, surroundings);
    prepare::model(run, &given, surroundings)
}

fn given(run: &Run, surroundings: &Surroundings<'_>) -> Given {
    let arguments = &surroundings.arguments.accelerate;
    let optimizer = arguments.optimizer.unwrap_or(if run.has("optimizer") {
        OptimizerInCode::Dummy { lr: None, weight_decay: None }
    } else {
        OptimizerInCode::Torch { lr: None::<Number> }
    });
    let scheduler = arguments.scheduler.unwrap_or(if run.has("scheduler") {
        SchedulerInCode::Dummy { total_num_steps: None, warmup_num_steps: None, callable: false }
    } else {
        SchedulerInCode::Absent
    });
    Given {
        loaders: arguments.dataloader_batch_sizes.clone(),
        split_batches: arguments.split_batches,
        smallest_batch: surroundings.arguments.plugin.is_train_batch_min.unwrap_or(true),
        gradient_accumulation_steps: arguments.gradient_accumulation_steps,
        optimizer,
        scheduler,
    }
}
