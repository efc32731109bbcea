//! The plan for machines.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};
use zeropilot_ask::AsWritten;
use zeropilot_plan::{Bound, Fitting, Limit, Longest, Offer, Reach, Rejected, Way, Work};
use zeropilot_record::Offload;
use zeropilot_step::shape::{Checkpoints, MlpTiles};

use super::{PlanReport, offers, offload};
use crate::estimate::{Estimate, Range};
use crate::json::value;
use crate::memory::{Fit, fit, fit_of, phase};
use crate::provenance;

/// The recommended strategy, alternatives that fit, strategies that do not fit, and the fallbacks if the run still runs
/// out of memory.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Plan<'a> {
    shape: u32,
    model: &'a str,
    task: &'static str,
    gpus: &'a str,
    world_size: u64,
    capacity: u64,
    /// Strategies there are, and those whose memory was predicted to find out.
    strategies: usize,
    predicted: usize,
    longest: Option<LongestSequence>,
    recommended: Option<Recommended<'a>>,
    cost_estimate: Option<CostEstimate>,
    by_gpu_count: Option<Vec<OnGpus>>,
    alternatives: Vec<FittingStrategy>,
    rejected: Vec<RejectedStrategy>,
    fallbacks: Vec<FittingStrategy>,
    gpus_needed: Option<u64>,
    host_ram_needed: Option<u64>,
    limits: &'static [&'static str],
    current: Option<CurrentJob>,
    provenance: provenance::Shape<'a>,
}

/// The longest sequence, if requested: `seq_len` tokens fit even at their upper bound, `expected` tokens are expected
/// to fit.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LongestSequence {
    seq_len: u64,
    expected: u64,
    by_changes: Vec<LongestWith>,
}

/// The longest sequence with some changes to the script; `limit` is `memory`, `kernels` or `asked`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LongestWith {
    seq_len: u64,
    fused_loss: bool,
    sequence_parallel: u64,
    activation_offload: bool,
    tiled_mlp: bool,
    limit: &'static str,
}

/// The strategy to run, with commands that start it, by launcher.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Recommended<'a> {
    #[serde(flatten)]
    fitting: FittingStrategy,
    launch: BTreeMap<&'static str, &'a str>,
}

/// A strategy that fits, with its DeepSpeed config; the time of a step only if the speed of the GPUs is known.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FittingStrategy {
    strategy: Strategy,
    config: Map<String, Value>,
    memory: PlannedMemory,
    step_seconds: Option<Range>,
}

/// Stage, offload (`cpu` or `nvme`) and batch. `sequence_parallel` GPUs share each sequence.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Strategy {
    stage: u8,
    offload_optimizer: Offload,
    offload_param: Offload,
    micro_batch: u64,
    gradient_accumulation_steps: u64,
    gradient_checkpointing: bool,
    fused_loss: bool,
    sequence_parallel: u64,
    activation_offload: bool,
    tiled_mlp: bool,
    hpz: u64,
}

/// Memory that a strategy needs on a GPU and on a host.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PlannedMemory {
    device: Estimate,
    host: Estimate,
}

/// A strategy whose upper bound does not fit even with the smallest settings, and the bytes that are missing.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RejectedStrategy {
    strategy: Strategy,
    over_by: u64,
    r#where: &'static str,
    device: Estimate,
    verdict: Fit,
    fullest: &'static str,
    other_models: u64,
    rollout_engine: u64,
}

/// Cost of the whole training: GPU hours, and money if a price was given.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CostEstimate {
    tokens: f64,
    gpu_hours: Option<f64>,
    cost: Option<f64>,
}

/// The best strategy on some of the GPUs, and its cost; no strategy if none fits.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OnGpus {
    nodes: u64,
    gpus_per_node: u64,
    strategy: Option<Strategy>,
    cost_estimate: Option<CostEstimate>,
}

/// The job as it is written.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CurrentJob {
    stage: u8,
    micro_batch: u64,
    gradient_accumulation_steps: u64,
    device: u64,
    verdict: Option<Fit>,
    step_seconds: Range,
}

/// The plan for machines.
pub fn json(report: &PlanReport<'_>) -> Value {
    let plan = report.plan;
    let shortage = plan.shortage.as_ref();
    let recommended = plan.fitting.first();
    let commands = report.commands.iter();
    let cost = |fitting: &Fitting| cost(report, fitting);
    let on_gpus = |offer: &Offer| {
        let (layout, best) = (offer.cluster.gpus.layout, offer.plan.fitting.first());
        OnGpus {
            nodes: layout.nodes,
            gpus_per_node: layout.gpus_per_node,
            strategy: best.map(|best| best.way.into()),
            cost_estimate: best.map(cost),
        }
    };
    value(&Plan {
        shape: 1,
        model: report.model,
        task: report.task.name(),
        gpus: report.gpus,
        world_size: report.world,
        capacity: report.capacity.expected().0,
        strategies: plan.ways,
        predicted: plan.asked,
        longest: report.longest.map(Into::into),
        recommended: recommended.map(|fitting| Recommended {
            fitting: fitting.into(),
            launch: commands.map(|(name, line)| (*name, line.as_str())).collect(),
        }),
        cost_estimate: report.bill.and(recommended).map(cost),
        by_gpu_count: report.offers.map(|offers| offers.each().map(on_gpus).collect()),
        alternatives: plan.fitting.iter().skip(1).map(Into::into).collect(),
        rejected: plan.rejected.iter().map(Into::into).collect(),
        fallbacks: plan.fallbacks.iter().map(Into::into).collect(),
        gpus_needed: shortage.and_then(|shortage| shortage.gpus).map(|more| more.count),
        host_ram_needed: shortage.and_then(|shortage| shortage.more_ram).map(|more| more.need.0),
        limits: shortage.map_or(&[], |shortage| match shortage.limit {
            Limit::Device => &["device"],
            Limit::Host => &["host"],
            Limit::Both => &["device", "host"],
        }),
        current: report.current.map(Into::into),
        provenance: report.provenance.into(),
    })
}

fn cost(report: &PlanReport<'_>, fitting: &Fitting) -> CostEstimate {
    let bill = report.bill.unwrap_or(offers::USUAL);
    let gpu_hours = offers::gpu_hours(fitting, bill, report.length);
    let cost = gpu_hours.zip(bill.per_gpu_hour).map(|(hours, price)| hours * price);
    CostEstimate { tokens: bill.tokens, gpu_hours, cost }
}

impl From<&Longest> for LongestSequence {
    fn from(longest: &Longest) -> Self {
        Self {
            seq_len: longest.reaches.last().map_or(0, |reach| reach.sequence),
            expected: longest.expected,
            by_changes: longest.reaches.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Reach> for LongestWith {
    fn from(reach: &Reach) -> Self {
        let long = reach.long_context;
        Self {
            seq_len: reach.sequence,
            fused_loss: reach.fused_loss,
            sequence_parallel: long.sequence_ranks,
            activation_offload: long.checkpoints == Checkpoints::OnHost,
            tiled_mlp: long.mlp_tiles != MlpTiles::Whole,
            limit: match reach.bound {
                Bound::Memory => "memory",
                Bound::Kernels => "kernels",
                Bound::Asked => "asked",
            },
        }
    }
}

impl From<&Fitting> for FittingStrategy {
    fn from(fitting: &Fitting) -> Self {
        let answer = &fitting.answer;
        Self {
            strategy: fitting.way.into(),
            config: fitting.recipe.config(),
            memory: PlannedMemory { device: answer.device().into(), host: answer.node().into() },
            step_seconds: fitting.time.as_ref().map(Range::from),
        }
    }
}

impl From<&Rejected> for RejectedStrategy {
    fn from(rejected: &Rejected) -> Self {
        let is_of_device = rejected.over_by().0 > 0;
        Self {
            strategy: rejected.way.into(),
            over_by: if is_of_device { rejected.over_by().0 } else { rejected.host_over_by.0 },
            r#where: if is_of_device { "device" } else { "host" },
            device: rejected.device.into(),
            verdict: match is_of_device {
                true => fit(rejected.device, zeropilot_units::Estimate::exact(rejected.capacity)),
                false => Fit::DoesNotFit,
            },
            fullest: phase::name(rejected.fullest),
            other_models: rejected.other_models.0,
            rollout_engine: rejected.rollout.0,
        }
    }
}

impl From<Way> for Strategy {
    fn from(way: Way) -> Self {
        let Work { micro_batch, accumulation, checkpointing, fused_loss, long_context } = way.work;
        let (offload_optimizer, offload_param) = offload(way);
        Self {
            stage: way.shape.stage.number(),
            offload_optimizer,
            offload_param,
            micro_batch,
            gradient_accumulation_steps: accumulation,
            gradient_checkpointing: checkpointing,
            fused_loss,
            sequence_parallel: long_context.sequence_ranks,
            activation_offload: long_context.checkpoints == Checkpoints::OnHost,
            tiled_mlp: long_context.mlp_tiles != MlpTiles::Whole,
            hpz: way.hpz,
        }
    }
}

impl From<&AsWritten> for CurrentJob {
    fn from(current: &AsWritten) -> Self {
        let question = current.job.question();
        Self {
            stage: question.zero.stage as u8,
            micro_batch: question.micro_batch,
            gradient_accumulation_steps: current.accumulation,
            device: current.answer.device().expected().0,
            verdict: fit_of(&current.answer, current.job.cluster()),
            step_seconds: (&current.time).into(),
        }
    }
}
