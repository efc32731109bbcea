//! What makes room for a sequence that is too long for a GPU: changes of the script, the least intrusive first.

use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{LowerError, Recipe as Training};
use zeropilot_step::shape::{Checkpoints, LongContext, MlpTiles};

use super::asking::Asker;
use super::space::Space;
use super::{Plan, PlanError, Task, search, shortage};

/// The plan with the fewest changes of the script with which something fits; `None` if nothing does, nothing may be
/// changed, or it is not the length of sequences that is too much.
pub(super) fn plan(task: &Task<'_>, space: &Space) -> Result<Option<Plan>, PlanError> {
    if !task.may_stretch || !shortage::fits_if_short(task, space)? {
        return Ok(None);
    }
    for training in changes(task) {
        let stretched = Task { training: &training, ..*task };
        let found = || search(&stretched, &Space::of(&stretched)?, &mut Asker::new(&stretched)?);
        match found() {
            Ok(plan) if !plan.fitting.is_empty() => return Ok(Some(plan)),
            // A model that cannot be trained this way, a batch that groups cannot share, or what is given forbids it.
            Ok(_) | Err(PlanError::Lower(LowerError::LongContext(_))) => {}
            Err(error) if error.is_of_this_size() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Ways to train, each with more changes than the one before: a fused loss, sequences shared inside a node, checkpoints
/// on the host, feed-forward layers in tiles, sequences shared between nodes.
pub(super) fn changes(task: &Task<'_>) -> Vec<Training> {
    let layout = task.cluster.gpus.layout;
    let loss = match task.training.loss {
        LossHead::Model => LossHead::Fused,
        other => other,
    };
    let fused = Training { loss, ..task.training.clone() };
    let with = |long_context: LongContext| Training { long_context, ..fused.clone() };
    let near: Vec<u64> = (2..=layout.gpus_per_node)
        .filter(|ranks| layout.gpus_per_node.is_multiple_of(*ranks))
        .collect();
    let shared = |sequence_ranks| LongContext { sequence_ranks, ..LongContext::NONE };
    let most = near.last().copied().unwrap_or(1);
    let on_host = LongContext { checkpoints: Checkpoints::OnHost, ..shared(most) };
    let tiled = LongContext { mlp_tiles: MlpTiles::Auto, ..on_host };
    let far = (2..=layout.nodes).filter(|nodes| layout.nodes.is_multiple_of(*nodes));
    let far = far.map(|nodes| LongContext { sequence_ranks: most * nodes, ..tiled });
    let all = near.iter().map(|&ranks| shared(ranks)).chain([on_host, tiled]).chain(far);
    let mut changes: Vec<Training> = all.map(with).collect();
    if loss != task.training.loss {
        changes.insert(0, fused.clone());
    }
    changes
}
