//! What would lower the memory of a GPU, and by how much.

use std::sync::LazyLock;

use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::{Stage, Zero};
use zeropilot_config::syntax::parse_json;
use zeropilot_units::{Bytes, Elements};

use super::answer::{Answer, Question};
use crate::head::LossHead;
use crate::lower::{LowerError, Recipe};
use crate::tape::{AttentionForm, Autocast};
use crate::task::{Frozen, Objective, Role};
use crate::zero::Engine;

/// One change to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lever {
    /// `zero_optimization.stage`.
    Stage(Stage),
    /// `zero_optimization.offload_optimizer` to the host.
    OffloadOptimizer,
    /// `zero_optimization.offload_param` to the host.
    OffloadParam,
    /// Activation checkpointing.
    Checkpointing,
    /// A smaller micro batch, the accumulation raised to match.
    MicroBatch(u64),
    /// A fused projection and loss.
    FusedLoss,
    /// A fused attention kernel.
    FlashAttention,
    /// Log-probabilities of the reference computed before training.
    PrecomputedReference,
    /// The engine that generates gives its memory back while the model is trained.
    RolloutSleep,
    /// `zero_optimization.reduce_bucket_size`.
    ReduceBucket(Elements),
    /// `zero_optimization.stage3_prefetch_bucket_size`.
    PrefetchBucket(Elements),
    /// `zero_optimization.stage3_max_live_parameters` and `stage3_max_reuse_distance`.
    LiveParameters(Elements),
    /// `zero_optimization.sub_group_size`.
    SubGroup(Elements),
    /// No `zero_optimization.offload_optimizer`.
    OptimizerOnGpu,
    /// No `zero_optimization.offload_param`.
    ParamOnGpu,
}

/// What a change brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Relief {
    /// The change.
    pub lever: Lever,
    /// Bytes of tensors the fullest GPU has less.
    pub saved: Bytes,
}

/// Buckets below this cost more time than they save memory.
const SMALL_BUCKET: Elements = Elements(50_000_000);

/// A working set of gathered parameters that still hides communication.
const FEW_LIVE: Elements = Elements(100_000_000);

/// A sub-group whose temporaries do not matter.
const SMALL_SUB_GROUP: Elements = Elements(100_000_000);

/// Changes that lower the memory of the fullest GPU, the most effective first.
///
/// # Errors
///
/// If the model cannot be lowered.
pub fn reliefs(question: &Question<'_>, now: &Answer) -> Result<Vec<Relief>, LowerError> {
    let most = now.tensors_and_rollout();
    let mut reliefs = Vec::new();
    for lever in levers(question) {
        let after = question.with(lever, |changed| {
            let changed = Answer::without_slack(changed, &changed.workload()?);
            Ok::<_, LowerError>(changed.tensors_and_rollout())
        })?;
        let saved = most.saturating_sub(after);
        if saved.0 > 0 {
            reliefs.push(Relief { lever, saved });
        }
    }
    reliefs.sort_by_key(|relief| std::cmp::Reverse(relief.saved));
    Ok(reliefs)
}

/// Changes that lower the memory of a host, the most effective first; what they save is that of all its processes.
///
/// # Errors
///
/// If the model cannot be lowered.
pub fn host_reliefs(question: &Question<'_>, now: &Answer) -> Result<Vec<Relief>, LowerError> {
    let zero = question.zero;
    let mut all = levers(question);
    all.extend(zero.offload_optimizer.as_ref().map(|_| Lever::OptimizerOnGpu));
    all.extend(zero.offload_param.as_ref().map(|_| Lever::ParamOnGpu));
    let mut reliefs = Vec::new();
    for lever in all {
        let after = question.with(lever, |changed| {
            Ok::<_, LowerError>(Answer::without_slack(changed, &changed.workload()?).node())
        })?;
        let saved = now.node().expected().saturating_sub(after.expected());
        if saved.0 > 0 {
            reliefs.push(Relief { lever, saved });
        }
    }
    reliefs.sort_by_key(|relief| std::cmp::Reverse(relief.saved));
    Ok(reliefs)
}

fn levers(question: &Question<'_>) -> Vec<Lever> {
    let (zero, recipe) = (question.zero, question.recipe);
    let is_stage_3 = zero.stage == Stage::Three;
    let mut levers = Vec::new();
    // Where ranks share layers no prediction follows stage 3, and a fused loss would see a part of the vocabulary.
    let has_whole_layers = recipe.tensor.ranks == 1;
    if question.cluster.world_size() > 1 {
        let higher = [Stage::One, Stage::Two, Stage::Three];
        let higher = higher.into_iter().filter(|stage| *stage > zero.stage);
        levers.extend(
            higher.filter(|stage| has_whole_layers || *stage != Stage::Three).map(Lever::Stage),
        );
    }
    let mut add = |applies: bool, lever: Lever| {
        if applies {
            levers.push(lever);
        }
    };
    add(zero.offload_optimizer.is_none() && zero.stage > Stage::Zero, Lever::OffloadOptimizer);
    add(is_stage_3 && zero.offload_param.is_none(), Lever::OffloadParam);
    add(!recipe.checkpointing, Lever::Checkpointing);
    add(question.micro_batch > 1, Lever::MicroBatch(question.micro_batch / 2));
    add(recipe.loss == LossHead::Model && has_whole_layers, Lever::FusedLoss);
    add(recipe.attention == AttentionForm::Eager, Lever::FlashAttention);
    let is_offline = matches!(recipe.task.objective, Objective::Dpo { .. } | Objective::Kto(_));
    add(is_offline && recipe.task.frozen.iter().any(is_reference), Lever::PrecomputedReference);
    let stays_awake = recipe.task.colocated().is_some_and(|engine| !engine.sleeps);
    add(stays_awake, Lever::RolloutSleep);
    let shrinks = |now: Elements, to: Elements| now > to;
    add(
        zero.stage > Stage::Zero && shrinks(zero.reduce_bucket, SMALL_BUCKET),
        Lever::ReduceBucket(SMALL_BUCKET),
    );
    add(
        is_stage_3 && shrinks(zero.prefetch_bucket, Elements(10_000_000)),
        Lever::PrefetchBucket(Elements(10_000_000)),
    );
    add(
        is_stage_3 && shrinks(zero.max_live_parameters.max(zero.max_reuse_distance), FEW_LIVE),
        Lever::LiveParameters(FEW_LIVE),
    );
    add(is_stage_3 && shrinks(zero.sub_group, SMALL_SUB_GROUP), Lever::SubGroup(SMALL_SUB_GROUP));
    levers
}

fn is_reference(frozen: &Frozen) -> bool {
    frozen.role == Role::Reference
}

impl Question<'_> {
    /// The same question after a change.
    fn with<T>(&self, lever: Lever, ask: impl FnOnce(&Question<'_>) -> T) -> T {
        let mut zero = self.zero.clone();
        let mut recipe = self.recipe.clone();
        let mut micro_batch = self.micro_batch;
        lever.apply_to_zero(&mut zero);
        recipe.task.frozen.iter_mut().filter_map(|frozen| frozen.zero.as_mut()).for_each(|zero| {
            lever.apply_to_zero(zero);
        });
        lever.apply(&mut recipe, &mut micro_batch);
        ask(&Question { zero: &zero, recipe: &recipe, micro_batch, ..*self })
    }
}

impl Lever {
    /// What it changes in the config; frozen models with settings of their own have the same file.
    fn apply_to_zero(self, zero: &mut Zero) {
        match self {
            Self::Stage(stage) => zero.stage = stage,
            Self::OffloadOptimizer => zero.offload_optimizer.clone_from(&ON_HOST.offload_optimizer),
            Self::OffloadParam => zero.offload_param.clone_from(&ON_HOST.offload_param),
            Self::ReduceBucket(size) => zero.reduce_bucket = size,
            Self::PrefetchBucket(size) => zero.prefetch_bucket = size,
            Self::LiveParameters(size) => {
                zero.max_live_parameters = size;
                zero.max_reuse_distance = size;
            }
            Self::SubGroup(size) => zero.sub_group = size,
            Self::OptimizerOnGpu => zero.offload_optimizer = None,
            Self::ParamOnGpu => zero.offload_param = None,
            Self::Checkpointing
            | Self::MicroBatch(_)
            | Self::FusedLoss
            | Self::FlashAttention
            | Self::PrecomputedReference
            | Self::RolloutSleep => {}
        }
    }

    /// What it changes outside the config.
    fn apply(self, recipe: &mut Recipe, micro_batch: &mut u64) {
        match self {
            // Without DeepSpeed there is no stage.
            Self::Stage(_) if recipe.engine == Engine::PyTorch => {
                (recipe.engine, recipe.autocast) = (Engine::DeepSpeed, Autocast::Off);
            }
            Self::Checkpointing => recipe.checkpointing = true,
            Self::MicroBatch(smaller) => *micro_batch = smaller,
            Self::FusedLoss => recipe.loss = LossHead::Fused,
            Self::FlashAttention => recipe.attention = AttentionForm::Flash,
            Self::PrecomputedReference => recipe.task.frozen.retain(|it| !is_reference(it)),
            Self::RolloutSleep => {
                if let Some(engine) = recipe.task.colocated_mut() {
                    engine.sleeps = true;
                }
            }
            _ => {}
        }
    }
}

/// Everything on the host, pinned, otherwise as the engine resolves it.
static ON_HOST: LazyLock<Zero> = LazyLock::new(|| {
    let config = r#"{"train_batch_size": 1, "zero_optimization": {"stage": 3,
        "offload_optimizer": {"device": "cpu", "pin_memory": true},
        "offload_param": {"device": "cpu", "pin_memory": true}}}"#;
    let document = parse_json(config).expect("the text is JSON");
    let circumstances = Circumstances::new(EngineVersion::NEWEST, 1);
    resolve(document.root(), circumstances).resolved.expect("DeepSpeed accepts the config").zero()
});
