//! What a reader must know about an answer beside its numbers.

use zeropilot_cluster::Cluster;
use zeropilot_config::schema::EngineVersion;
use zeropilot_model::Model;
use zeropilot_plan::{Fitting, Target};
use zeropilot_step::lower::Recipe;
use zeropilot_units::Bytes;

use crate::bill::Bill;
use crate::name::{NumberFormat, Optimizer, TaskName, TrainerName};
use crate::task::TaskRequest;
use crate::training::Training;

/// Host memory of a node that few machines have.
const LARGE_HOST: Bytes = Bytes(1 << 40);
/// A run that takes so many days is seldom meant.
const LONG_RUN: u64 = 30;
/// Tokens that a run is judged by where nobody says how many there are.
const USUAL_TOKENS: f64 = 1e9;

/// Something that changes what an answer is worth, or that was said and is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    /// fp16 is assumed, since these GPUs have no bf16.
    Fp16Assumed {
        /// Their name.
        card: &'static str,
    },
    /// bf16 is wanted on GPUs that have none.
    NoBf16 {
        /// Their name.
        card: &'static str,
    },
    /// The recommended strategy needs more host memory than most machines have, and nobody says what these have.
    LargeHost {
        /// What a node needs.
        need: Bytes,
    },
    /// The recommended strategy takes months.
    LongRun {
        /// Tokens to train on.
        tokens: u64,
        /// Whether nobody said how many.
        is_assumed: bool,
        /// Days on all GPUs.
        days: u64,
    },
    /// No global batch is given, so that every strategy has its own.
    OpenBatch,
    /// DeepSpeed builds AdamW by the config that is written, whatever optimizer was named.
    OptimizerUnused,
    /// Links between nodes were given, and there is only one node.
    NetworkUnused,
    /// The recommended strategy uses hpZ, which older engines compute wrongly.
    HpzVersion,
    /// In stages 1 and 2 gradients of sequences that GPUs share are multiplied.
    SharedGradients {
        /// By so much.
        times: u64,
        /// Whether these stages are left out for it.
        avoided: bool,
    },
    /// Ranks that share layers train on the same sequences, which `train_batch_size` counts several times.
    RepeatedSequences {
        /// So many times.
        ranks: u64,
    },
    /// A tensor of hidden states has more elements than 32 bits count, where Liger's kernels run.
    WideRows,
    /// The loss is that of the newest TRL: releases before 1.7 keep whole logits.
    TrlAssumed,
    /// Log-probabilities are computed as by the newest TRL: releases before 1.15 keep whole logits.
    TrlScoresAssumed,
    /// PPO's trainers do not switch gradient checkpointing on.
    PpoCheckpointing,
    /// Frozen models get the optimizer of the config, too.
    FrozenWithOptimizer,
    /// Gradient checkpointing runs the frozen vision tower backward too.
    FrozenTowerDifferentiated,
    /// Every rank holds the whole quantized model before stage 3 shards it.
    QuantizedLoadedWhole,
    /// Speeds are those that so many ranks measured on one of the nodes.
    MeasuredMachine {
        /// The ranks.
        ranks: u64,
        /// Whether calls among the GPUs of a node were measured for as many as there are.
        links: bool,
    },
}

impl Note {
    /// Whether this engine, or an older release of its minor version, computes hpZ wrongly.
    pub(crate) fn is_hpz_wrong(engine: EngineVersion) -> bool {
        engine < EngineVersion::V0_18
    }

    /// Whether it says that the answer cannot be meant as it is.
    pub fn is_warning(self) -> bool {
        matches!(self, Self::NoBf16 { .. } | Self::LargeHost { .. } | Self::LongRun { .. })
    }

    /// What makes a strategy that fits one that nobody would run.
    pub(crate) fn about_choice(
        choice: &Fitting,
        cluster: &Cluster,
        length: u64,
        bill: Option<Bill>,
    ) -> Vec<Self> {
        let need = choice.answer.node().expected();
        let of_host = cluster.host.ram.is_none() && need >= LARGE_HOST;
        let tokens = bill.map_or(USUAL_TOKENS, |bill| bill.tokens);
        let each = choice.seconds_per_sequence();
        let days = each.map(|each| {
            let ranks = cluster.world_size().max(1) as f64;
            whole(each / length as f64 * tokens / ranks / 86_400.0)
        });
        let of_time = days.filter(|days| *days >= LONG_RUN).map(|days| Self::LongRun {
            tokens: whole(tokens),
            is_assumed: bill.is_none(),
            days,
        });
        of_host.then_some(Self::LargeHost { need }).into_iter().chain(of_time).collect()
    }

    /// What there is to say about loading a model for stage 3.
    pub(crate) fn about_loading(model: &Model, recipe: &Recipe) -> Option<Self> {
        let is_loaded_whole = recipe.loading.is_none() && recipe.method.base(model).is_some();
        is_loaded_whole.then_some(Self::QuantizedLoadedWhole)
    }

    /// What there is to say about long sequences of a rank.
    pub(crate) fn about_length(model: &Model, recipe: &Recipe, micro_batch: u64) -> Option<Self> {
        let hidden = model.dimensions()?.hidden_size;
        let tokens = recipe.long_context.share(recipe.sequence) * micro_batch;
        let is_beyond = tokens.saturating_mul(hidden) > Recipe::LIGER_REACH;
        (recipe.runs_liger() && is_beyond).then_some(Self::WideRows)
    }

    /// What there is to say about an optimizer of a plan for this reader.
    pub(crate) fn about_optimizer(target: Target, training: &Training) -> Option<Self> {
        let is_written = target == Target::DeepSpeed;
        (is_written && training.optimizer() != Optimizer::Adamw).then_some(Self::OptimizerUnused)
    }

    /// What there is to say about a task.
    pub(crate) fn about_task(task: &TaskRequest, training: &Training) -> Option<Self> {
        if task.task() == TaskName::Ppo {
            return Some(Self::PpoCheckpointing);
        }
        let is_trl = task.trainer.unwrap_or_default() == TrainerName::Trl;
        let is_assumed = is_trl && training.software.trl_version.is_none();
        (task.task().compares() && is_assumed).then_some(Self::TrlScoresAssumed)
    }

    /// What there is to say about training in a number format on a cluster.
    pub(crate) fn about(cluster: &Cluster, format: NumberFormat, is_assumed: bool) -> Vec<Self> {
        let card = cluster.gpus.device.accelerator().filter(|card| card.lacks_bf16());
        let of_format = card.and_then(|card| match format {
            NumberFormat::Bf16 => Some(Self::NoBf16 { card: &card.name }),
            NumberFormat::Fp16 => is_assumed.then_some(Self::Fp16Assumed { card: &card.name }),
            NumberFormat::Fp32 => None,
        });
        let is_alone = cluster.gpus.layout.nodes == 1;
        let of_network = cluster.network.filter(|_| is_alone).map(|_| Self::NetworkUnused);
        let of_machine = cluster.measured().map(|measured| Self::MeasuredMachine {
            ranks: measured.ranks,
            links: is_alone && measured.ranks == cluster.gpus.layout.gpus_per_node,
        });
        of_format.into_iter().chain(of_network).chain(of_machine).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "days and tokens")]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
