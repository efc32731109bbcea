//! One rank's steady step in order: what its kernels do, what it sends, copies, waits for and updates.
//!
//! It depends on the model, the config and the number of ranks, not on the machines: [`traffic`](crate::traffic) adds it
//! up, [`time`](crate::time) runs it on a cluster. Micro steps that are alike are told once.

mod follow;

use zeropilot_config::settings::{OffloadDevice, Stage, Zero};

use self::follow::{Followed, Follower};
use crate::lower::{Lowered, RankOf};
use crate::tape::Work;
use crate::zero::{
    BaseOptimizer, Collective, Dtypes, HostCopy, Place, Run, Wrapper, optimizer_calls,
};

/// One thing a rank does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Kernels run.
    Compute(Work),
    /// A module begins (stage 3): its hooks run on the host.
    Enter(u32),
    /// Ranks communicate, and what follows on the same stream waits.
    Call(Collective),
    /// Ranks that share a sequence or layers communicate in the middle of a computation, which waits for the result.
    Exchange(Collective),
    /// Ranks communicate while other things go on; the number is asked for by [`Op::Join`].
    Launch(Collective, u32),
    /// What follows needs the result of a [`Op::Launch`] of the same pass.
    Join(u32),
    /// Bytes go between host and device.
    Copy(HostCopy),
    /// A checkpoint goes to the host or comes back, through memory that is not pinned, and what follows waits.
    Offload(HostCopy),
    /// The optimizer updates elements.
    Update {
        /// How many.
        elements: u64,
        /// Where.
        place: Place,
    },
}

/// One micro step.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MicroOps {
    /// Up to the loss.
    pub forward: Vec<Op>,
    /// Up to the end of backward.
    pub backward: Vec<Op>,
}

/// Where streams and hosts wait, as the config decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manners {
    /// The engine's optimizer.
    pub wrapper: Wrapper,
    /// Whether reductions run beside the backward pass.
    pub overlap: bool,
    /// Whether every reduction first waits for the whole device.
    pub synchronous_reductions: bool,
    /// Whether host memory that is copied from and to is pinned.
    pub pinned: bool,
    /// Bytes of an element of master, moment, accumulated and model numbers.
    pub dtypes: Dtypes,
    /// The optimizer.
    pub optimizer: BaseOptimizer,
    /// Whether optimizer states live on a disk.
    pub states_on_disk: bool,
    /// Whether parameters do.
    pub parameters_on_disk: bool,
    /// Whether parameters live on the host.
    pub parameters_on_host: bool,
    /// Whether reading, updating and writing of states overlap.
    pub pipelined: bool,
    /// Neighbours that share every layer: ZeRO shards over one of each group.
    pub tensor_ranks: u64,
}

/// A steady step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgram {
    /// Micro steps that differ: the first, all between, the last. Of a single one only that, of two both.
    pub micro_steps: Vec<MicroOps>,
    /// Micro steps of a step.
    pub accumulation: u64,
    /// Passes over a piece of completions, and how often they happen beside those of the first micro step.
    pub further_pieces: (MicroOps, u64),
    /// The optimizer step.
    pub step: Vec<Op>,
    /// Where it waits.
    pub manners: Manners,
    /// Ranks.
    pub ranks: u64,
}

impl StepProgram {
    /// The step of a rank; `clips` says whether gradients are clipped.
    #[must_use]
    pub fn of(lowered: &Lowered, rank: &RankOf<'_>, clips: bool) -> Self {
        let run = lowered.run(rank);
        let ranks = lowered.frozen_ranks(rank);
        let frozen = lowered.frozen().iter().zip(&ranks);
        let frozen: Vec<Run<'_>> = frozen.map(|(model, rank)| model.run(rank)).collect();
        let Followed { micro_steps, piece } = Follower::steady_step_of(&run, lowered, &frozen);
        let pieces = lowered.micro_step().pieces.saturating_sub(1);
        Self {
            micro_steps,
            further_pieces: (MicroOps { forward: piece, ..MicroOps::default() }, pieces),
            accumulation: run.accumulation_steps.max(1),
            step: follow::ops_of(|sink| optimizer_calls(&run, clips, sink)),
            manners: Manners::of(&run),
            ranks: run.world * run.tensor_ranks,
        }
    }

    /// Every micro step and every piece of completions with how often it happens.
    pub fn counted(&self) -> impl Iterator<Item = (&MicroOps, u64)> {
        let (count, last) = (self.accumulation, self.micro_steps.len().saturating_sub(1));
        let micro_steps = self.micro_steps.iter().enumerate().map(move |(index, micro)| {
            let is_between = index == 1 && index < last;
            (micro, if is_between { count - 2 } else { 1 })
        });
        let (piece, times) = &self.further_pieces;
        let pieces = (!piece.forward.is_empty()).then_some((piece, *times));
        pieces.into_iter().chain(micro_steps)
    }
}

impl Manners {
    fn of(run: &Run<'_>) -> Self {
        let Zero { offload_optimizer, offload_param, .. } = run.zero;
        let is_disk = |device: &OffloadDevice| matches!(device, OffloadDevice::Nvme(_));
        let zero = run.zero;
        let pinned = offload_optimizer.as_ref().is_none_or(|offload| offload.pin_memory)
            && offload_param.as_ref().is_none_or(|offload| offload.pin_memory);
        Self {
            wrapper: Wrapper::of(run),
            overlap: zero.overlap_comm,
            synchronous_reductions: zero.stage != Stage::Three
                && (!run.contiguous_gradients() || !zero.multi_rank_bucket_allreduce),
            pinned,
            dtypes: Dtypes::of(run),
            optimizer: run.optimizer,
            states_on_disk: offload_optimizer.as_ref().is_some_and(|o| is_disk(&o.device)),
            parameters_on_disk: offload_param.as_ref().is_some_and(|o| is_disk(&o.device)),
            parameters_on_host: offload_param.is_some(),
            pipelined: offload_optimizer
                .as_ref()
                .is_some_and(|o| o.pipeline_read || o.pipeline_write),
            tensor_ranks: run.tensor_ranks,
        }
    }
}
