//! Which memory is short where nothing fits, and what would help. Every remedy was put to the memory model.

use zeropilot_cluster::Layout;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::Recipe as Training;
use zeropilot_step::task::Objective;
use zeropilot_units::{Bytes, Estimate};

use super::asking::Asker;
use super::space::Space;
use super::way::{Offloaded, Shape, Way};
use super::{Held, PlanError, Rejected, Task, least, partition_point, plan};
use crate::zero::Stage;

/// A memory that is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// That of the GPUs, whatever is offloaded.
    Device,
    /// That of the hosts: the GPUs have room without any offload.
    Host,
    /// That of the GPUs without offload, that of the hosts with it.
    Both,
}

/// Memory of a host with which a way would fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreRam {
    /// The way that fits with the least.
    pub way: Way,
    /// What all processes of a host need together.
    pub need: Bytes,
    /// How many they are.
    pub processes: u64,
}

/// More GPUs with which a way would fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MoreGpus {
    /// How many.
    pub count: u64,
    /// The way.
    pub way: Way,
}

/// What no number of GPUs makes less, where it is more than each has.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsplit {
    /// The stage in which they were counted.
    pub stage: Stage,
    /// What each needs.
    pub need: Estimate,
    /// The module or parameter where it is fullest.
    pub nearest: Option<String>,
}

/// Why nothing fits, and what would.
#[derive(Debug, Clone, PartialEq)]
pub struct Shortage {
    /// What is short.
    pub limit: Limit,
    /// What a host has, if it was said.
    pub ram: Option<Bytes>,
    /// More memory in the hosts, where that would do.
    pub more_ram: Option<MoreRam>,
    /// What would fit if states may be kept on a disk, where none was offered.
    pub on_disk: Option<Way>,
    /// What would fit if projection and cross entropy were one kernel, where they are not and none was offered.
    pub fused: Option<Way>,
    /// GPUs of the same kind that would do.
    pub gpus: Option<MoreGpus>,
    /// Why no number of them would.
    pub unsplit: Option<Unsplit>,
    /// Tokens of a sequence that would fit on the same GPUs.
    pub shorter: Option<u64>,
    /// What would fit if nothing were given of the way, with what is.
    pub released: Option<(Held, Way)>,
}

/// What is short, given the ways that do not fit.
pub(super) fn of(
    task: &Task<'_>,
    space: &Space,
    asker: &Asker<'_>,
    rejected: &[Rejected],
) -> Result<Shortage, PlanError> {
    let has_room_on_gpus = |way: &&Rejected| way.over_by() == Bytes(0);
    let short_of_ram = || rejected.iter().filter(has_room_on_gpus);
    let is_kept = |way: &Rejected| way.way.shape.offloaded == Offloaded::Nothing;
    let limit = match short_of_ram().next() {
        None => Limit::Device,
        Some(_) if short_of_ram().any(is_kept) => Limit::Host,
        Some(_) => Limit::Both,
    };
    let ram = task.cluster.host.ram;
    let least = short_of_ram().min_by_key(|way| way.host_over_by);
    let more_ram = least.zip(ram).map(|(least, ram)| MoreRam {
        way: least.way,
        need: ram + least.host_over_by,
        processes: task.cluster.gpus.layout.gpus_per_node,
    });
    let (gpus, unsplit) = more_gpus(task, space, asker)?;
    let shorter = if limit == Limit::Host { None } else { shorter(task, space)? };
    let (on_disk, released) = (on_disk(task, space)?, released(task)?);
    let fused = if limit == Limit::Host { None } else { fused(task, space)? };
    Ok(Shortage { limit, ram, more_ram, on_disk, fused, gpus, unsplit, shorter, released })
}

/// The best way if the search may choose everything, where something was given.
fn released(task: &Task<'_>) -> Result<Option<(Held, Way)>, PlanError> {
    if task.held.is_nothing() {
        return Ok(None);
    }
    let free = plan(&Task { held: Held::default(), ..*task })?;
    Ok(free.fitting.first().map(|choice| (task.held, choice.way)))
}

/// The first way with a fused loss that fits, where the logits are computed and a fused loss was not tried before.
fn fused(task: &Task<'_>, space: &Space) -> Result<Option<Way>, PlanError> {
    let Training { loss, task: steps, .. } = task.training;
    let is_tried = task.may_fuse_loss || task.may_stretch;
    if is_tried || *loss != LossHead::Model || steps.objective != Objective::NextToken {
        return Ok(None);
    }
    let training = Training { loss: LossHead::Fused, ..task.training.clone() };
    let with_fused = Task { training: &training, ..*task };
    first_with_room(space.shapes.iter().copied(), space, &mut Asker::new(&with_fused)?)
}

/// The first way with a disk that fits, where none was offered.
fn on_disk(task: &Task<'_>, space: &Space) -> Result<Option<Way>, PlanError> {
    if task.nvme_path.is_some() {
        return Ok(None);
    }
    let with_disk = Task { nvme_path: Some("/local_nvme"), ..*task };
    let shapes = task.held.shapes().filter(|shape| shape.offloaded.is_on_disk());
    first_with_room(shapes, space, &mut Asker::new(&with_disk)?)
}

/// The first of some shapes that fits at its smallest.
fn first_with_room(
    shapes: impl Iterator<Item = Shape>,
    space: &Space,
    asker: &mut Asker<'_>,
) -> Result<Option<Way>, PlanError> {
    for shape in shapes {
        let way = least(shape, space);
        if asker.has_room(way)? {
            return Ok(Some(way));
        }
    }
    Ok(None)
}

/// Sequences are shortened to no less than this.
const SHORTEST: u64 = 256;

/// The longest sequence, by halving, of which something fits on the same GPUs.
fn shorter(task: &Task<'_>, space: &Space) -> Result<Option<u64>, PlanError> {
    let halves = std::iter::successors(Some(task.training.sequence / 2), |length| Some(length / 2));
    let lengths: Vec<u64> = halves.take_while(|length| *length >= SHORTEST).collect();
    let enough = partition_point(&lengths, |&length| Ok(!fits_at(task, space, length)?))?;
    Ok(lengths.get(enough).copied())
}

/// Whether something fits if sequences are short.
pub(super) fn fits_if_short(task: &Task<'_>, space: &Space) -> Result<bool, PlanError> {
    fits_at(task, space, SHORTEST.min(task.training.sequence))
}

fn fits_at(task: &Task<'_>, space: &Space, sequence: u64) -> Result<bool, PlanError> {
    let steps = task.training.task.clone().shortened((sequence, task.training.sequence));
    let training = Training { sequence, task: steps, ..task.training.clone() };
    let with_less = Task { training: &training, ..*task };
    let shapes = space.shapes.iter().copied();
    Ok(first_with_room(shapes, space, &mut Asker::new(&with_less)?)?.is_some())
}

/// GPUs of a node, where one has to be imagined.
const NODE: u64 = 8;

/// Nodes beyond which no more are tried.
const MOST_NODES: u64 = 1 << 14;

/// The least number of GPUs of this kind for which stage 3 without offload, or what is given instead, fits at its smallest:
/// in one node, else in whole ones. If none do, what each needs where there are most of them, if it is the GPU that lacks it.
fn more_gpus(
    task: &Task<'_>,
    space: &Space,
    asker: &Asker<'_>,
) -> Result<(Option<MoreGpus>, Option<Unsplit>), PlanError> {
    let shape = Shape {
        stage: task.held.stage.unwrap_or(Stage::Three),
        offloaded: task.held.offloaded.unwrap_or(Offloaded::Nothing),
    };
    let mut way = least(shape, space);
    way.work.accumulation = 1;
    let layout = task.cluster.gpus.layout;
    let per_node = layout.gpus_per_node.max(NODE);
    let within_a_node = (layout.gpus_per_node + 1..per_node).map(|gpus| (1, gpus));
    let whole_nodes = (0..MOST_NODES.ilog2()).map(|power| (1 << power, per_node));
    let more = |&(nodes, gpus): &(u64, u64)| nodes * gpus > task.cluster.world_size();
    let sizes: Vec<(u64, u64)> = within_a_node.chain(whole_nodes).filter(more).collect();
    let wider = |(nodes, gpus_per_node): (u64, u64)| {
        let mut cluster = task.cluster.clone();
        cluster.gpus.layout = Layout { nodes, gpus_per_node, ..layout };
        cluster
    };
    let lacks = |&size: &(u64, u64)| {
        let wider = Task { cluster: &wider(size), global_batch: None, ..*task };
        Ok(!asker.about(&wider).has_room(way)?)
    };
    let enough = partition_point(&sizes, lacks)?;
    if let Some((nodes, gpus)) = sizes.get(enough) {
        return Ok((Some(MoreGpus { count: nodes * gpus, way }), None));
    }
    let Some(&most) = sizes.last() else { return Ok((None, None)) };
    let wider = Task { cluster: &wider(most), global_batch: None, ..*task };
    let mut asker = asker.about(&wider);
    let answer = asker.fitting(way)?.answer;
    let is_short = asker.device_lacks(&answer) > Bytes(0);
    let unsplit = is_short.then(|| Unsplit {
        stage: shape.stage,
        need: answer.device(),
        nearest: answer.nearest,
    });
    Ok((None, unsplit))
}
