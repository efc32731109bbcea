//! Which ways there are to search.

use std::num::NonZeroU64;
use std::sync::LazyLock;

use zeropilot_cluster::Layout;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Zero;
use zeropilot_config::syntax::parse_json;
use zeropilot_step::head::LossHead;
use zeropilot_step::shape::{Checkpoints, LongContext};
use zeropilot_units::Elements;

#[cfg(test)]
use super::way::Way;
use super::way::{Offloaded, Shape, Sizes, Work};
use super::{PlanError, Task};
use crate::sizing::{ModelSize, nine_tenths};
use crate::zero::Stage;

/// Micro batches that are tried.
const MICRO_BATCHES: [u64; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// Every list from the smallest to the largest.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Space {
    pub(super) shapes: Vec<Shape>,
    /// Micro batches that may be tried, whatever the global batch is.
    pub(super) micro_batches: Vec<u64>,
    /// Micro batches with their accumulation.
    pub(super) batches: Vec<(u64, u64)>,
    pub(super) checkpointing: Vec<bool>,
    pub(super) fused_loss: Vec<bool>,
    pub(super) long_context: LongContext,
    pub(super) hpz: Vec<u64>,
    pub(super) reduce: Vec<Elements>,
    /// `allgather_bucket_size`.
    pub(super) allgather: Vec<Elements>,
    /// `stage3_prefetch_bucket_size`.
    pub(super) prefetch: Vec<Elements>,
    pub(super) persistent: Vec<Elements>,
    pub(super) live: Vec<Elements>,
    pub(super) overlap: Vec<bool>,
    /// What sizes are if nobody chooses them, those of stage 3.
    pub(super) usual: Sizes,
}

/// What the engine does if nothing is said.
pub(super) static ENGINE: LazyLock<Zero> = LazyLock::new(|| {
    let config = r#"{"train_batch_size": 1, "zero_optimization": {"stage": 3}}"#;
    let document = parse_json(config).expect("the text is JSON");
    let circumstances = Circumstances::new(EngineVersion::NEWEST, 1);
    resolve(document.root(), circumstances).resolved.expect("DeepSpeed accepts the config").zero()
});

impl Space {
    /// Everything worth trying.
    ///
    /// # Errors
    ///
    /// If the batch cannot be spread over the ranks, or the engine has nothing of what is held.
    pub(super) fn of(task: &Task<'_>) -> Result<Self, PlanError> {
        let model = ModelSize::of(task.model);
        let square = model.map(|model| model.square());
        let with = |own: Option<Elements>, others: &[u64]| {
            let mut sizes: Vec<Elements> = others.iter().map(|size| Elements(*size)).collect();
            sizes.extend(own);
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let has_fused = task.training.loss == LossHead::Fused;
        let micro_batches = micro_batches(task);
        let mut checkpointing = match task.training.long_context.checkpoints {
            Checkpoints::OnHost => vec![true],
            Checkpoints::Counted | Checkpoints::Reentrant => vec![false, true],
        };
        checkpointing.retain(|is| task.held.checkpointing.is_none_or(|held| held == *is));
        let shapes = shapes(task);
        if shapes.is_empty() || checkpointing.is_empty() {
            return Err(PlanError::NoSuchWay(task.held));
        }
        Ok(Self {
            shapes,
            batches: batches(task, &micro_batches)?,
            micro_batches,
            checkpointing,
            fused_loss: match (has_fused, task.may_fuse_loss) {
                (true, _) => vec![true],
                (false, true) => vec![false, true],
                (false, false) => vec![false],
            },
            long_context: task.training.long_context,
            hpz: hpz(task),
            reduce: with(square, &[50_000_000, 100_000_000, 200_000_000, ENGINE.reduce_bucket.0]),
            allgather: with(
                None,
                &[50_000_000, 100_000_000, 200_000_000, ENGINE.allgather_bucket.0],
            ),
            prefetch: with(
                square.map(nine_tenths),
                &[10_000_000, ENGINE.prefetch_bucket.0, 100_000_000, 200_000_000],
            ),
            persistent: with(
                model.map(|model| model.ten_rows()),
                &[ENGINE.param_persistence_threshold.0, 1_000_000],
            ),
            live: with(
                None,
                &[100_000_000, 300_000_000, ENGINE.max_live_parameters.0, 3_000_000_000],
            ),
            overlap: vec![false, true],
            usual: Sizes {
                reduce: square.unwrap_or(ENGINE.reduce_bucket),
                gather: square.map_or(ENGINE.prefetch_bucket, nine_tenths),
                persistent: model
                    .map_or(ENGINE.param_persistence_threshold, |model| model.ten_rows()),
                live: ENGINE.max_live_parameters,
                overlap: true,
            },
        })
    }

    /// Ways in it.
    pub(super) fn len(&self) -> usize {
        let work = self.batches.len() * self.checkpointing.len() * self.fused_loss.len();
        let of_shape = |shape: &Shape| work * self.hpz_of(*shape).len() * self.sizes(*shape).len();
        self.shapes.iter().map(of_shape).sum()
    }

    /// Every shape with every hpZ group it knows.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (Shape, u64)> {
        let shapes = self.shapes.iter();
        shapes.flat_map(|&shape| self.hpz_of(shape).iter().map(move |&hpz| (shape, hpz)))
    }

    /// hpZ groups that a shape knows.
    pub(super) fn hpz_of(&self, shape: Shape) -> &[u64] {
        // Weights on the host are fetched from there, copy or not.
        if shape.stage == Stage::Three && !shape.offloaded.has_weights() { &self.hpz } else { &[1] }
    }

    /// What a micro batch can be, by recomputation and loss; within each by micro batch.
    pub(super) fn work(&self) -> Vec<Vec<Work>> {
        let mut lists = Vec::new();
        for &checkpointing in &self.checkpointing {
            for &fused_loss in &self.fused_loss {
                let work = |&(micro_batch, accumulation): &(u64, u64)| Work {
                    micro_batch,
                    accumulation,
                    checkpointing,
                    fused_loss,
                    long_context: self.long_context,
                };
                lists.push(self.batches.iter().map(work).collect());
            }
        }
        lists
    }

    /// The smallest sizes a shape knows.
    pub(super) fn smallest(&self, shape: Shape) -> Sizes {
        let gather = if shape.stage == Stage::Three { &self.prefetch } else { &self.allgather };
        Sizes {
            reduce: self.reduce[0],
            gather: gather[0],
            persistent: self.persistent[0],
            live: self.live[0],
            overlap: self.overlap[0],
        }
    }

    /// Sizes a shape knows, the smallest first.
    pub(super) fn sizes(&self, shape: Shape) -> Vec<Sizes> {
        let mut all = vec![self.smallest(shape)];
        let mut vary = |list: &[Elements], set: fn(&mut Sizes, Elements)| {
            all = each(&all, list, set);
        };
        match shape.stage {
            Stage::Zero => return all,
            Stage::One | Stage::Two => vary(&self.allgather, |sizes, size| sizes.gather = size),
            Stage::Three => {
                vary(&self.prefetch, |sizes, size| sizes.gather = size);
                vary(&self.persistent, |sizes, size| sizes.persistent = size);
                vary(&self.live, |sizes, size| sizes.live = size);
            }
        }
        vary(&self.reduce, |sizes, size| sizes.reduce = size);
        each(&all, &self.overlap, |sizes, overlap| sizes.overlap = overlap)
    }

    /// The sizes a config has if nobody chooses them: for the model where HF Trainer would, else the engine's.
    pub(super) fn usual(&self, shape: Shape) -> Sizes {
        match shape.stage {
            Stage::Zero => self.smallest(shape),
            Stage::One | Stage::Two => {
                Sizes { gather: ENGINE.allgather_bucket, overlap: false, ..self.usual }
            }
            Stage::Three => self.usual,
        }
    }

    /// Every way there is.
    #[cfg(test)]
    pub(super) fn ways(&self) -> Vec<Way> {
        let mut ways = Vec::new();
        for (shape, hpz) in self.kinds() {
            for work in self.work().into_iter().flatten() {
                let way = |sizes| Way { shape, work, hpz, sizes };
                ways.extend(self.sizes(shape).into_iter().map(way));
            }
        }
        ways
    }
}

fn each<T: Copy>(all: &[Sizes], list: &[T], set: fn(&mut Sizes, T)) -> Vec<Sizes> {
    let mut varied = Vec::with_capacity(all.len() * list.len());
    for value in list {
        for sizes in all {
            let mut sizes = *sizes;
            set(&mut sizes, *value);
            varied.push(sizes);
        }
    }
    varied
}

fn shapes(task: &Task<'_>) -> Vec<Shape> {
    let is_alone = task.cluster.world_size() == 1;
    // One rank shares nothing: stages 1 and 2 would only add copies.
    let is_useless = |shape: &Shape| {
        is_alone
            && task.held.stage.is_none()
            && matches!(shape.stage, Stage::One | Stage::Two)
            && shape.offloaded == Offloaded::Nothing
    };
    let is_possible = |shape: &Shape| task.nvme_path.is_some() || !shape.offloaded.is_on_disk();
    // In stages 1 and 2 the engine multiplies the gradients of ranks that share a sequence.
    let shares = task.training.long_context.sequence_ranks > 1;
    let is_right = |shape: &Shape| !shares || shape.stage == Stage::Three;
    task.held
        .shapes()
        .filter(|shape| is_possible(shape) && is_right(shape) && !is_useless(shape))
        .collect()
}

fn micro_batches(task: &Task<'_>) -> Vec<u64> {
    task.held.micro_batch.map_or(MICRO_BATCHES.to_vec(), |held| vec![held.get()])
}

/// Micro batches with their accumulation.
fn batches(task: &Task<'_>, micro_batches: &[u64]) -> Result<Vec<(u64, u64)>, PlanError> {
    let world = task.sequence_groups();
    let micro_batches = micro_batches.iter().copied();
    let Some(global) = task.global_batch.map(NonZeroU64::get) else {
        return Ok(micro_batches.map(|micro| (micro, 1)).collect());
    };
    if !global.is_multiple_of(world) {
        return Err(PlanError::Batch { global, world });
    }
    let each = global / world;
    let divides = micro_batches.filter(|micro| each.is_multiple_of(*micro));
    let batches: Vec<(u64, u64)> = divides.map(|micro| (micro, each / micro)).collect();
    match task.held.micro_batch {
        Some(held) if batches.is_empty() => {
            Err(PlanError::MicroBatch { global, world, micro: held.get() })
        }
        _ => Ok(batches),
    }
}

/// None, or the GPUs of a node where there are several: a smaller group gathers over the same links and holds more.
fn hpz(task: &Task<'_>) -> Vec<u64> {
    match task.cluster.gpus.layout {
        Layout { nodes: 2.., gpus_per_node: node @ 2.., .. } => vec![1, node],
        _ => vec![1],
    }
}
