//! What a training job needs of its GPUs and hosts.
//!
//! Two predictions stand side by side. [`Question::tensors`] counts tensors as the engine's own ranks were measured to
//! hold them, on CPUs under a recorder. [`Answer::on_gpu`] runs the same program with CUDA's kernels and copies, and
//! [`Answer::device`] adds what is no tensor: the allocator's slack, the context, the communicators.

use zeropilot_cluster::Cluster;
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::settings::{OffloadDevice, Stage, Zero};
use zeropilot_model::Model;
use zeropilot_units::{Bytes, Estimate};

use super::interval::{Group, Interval};
use super::prediction::{Counting, Phase, Prediction};
use super::rollout::RolloutMemory;
use super::workload::{Flattening, Workload, WorkloadKey};
use crate::cuda::{Counted, Gradients, Machine, Term};
use crate::lower::{Conditions, Fidelity, LowerError, Lowered, Recipe};
use crate::program::StepProgram;
use crate::tape::{Accounting, Kernels, Options};
use crate::zero::{Category, Engine, Place, Rest, flattens_on_device};
use zeropilot_model::ErrorRange;

/// A training job.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// The model, without adapters.
    pub model: &'a Model,
    /// How it is trained.
    pub recipe: &'a Recipe,
    /// The config, resolved for the number of ranks.
    pub resolved: &'a ResolvedConfig,
    /// Its ZeRO settings.
    pub zero: &'a Zero,
    /// Sequences of a micro batch.
    pub micro_batch: u64,
    /// Where it runs.
    pub cluster: &'a Cluster,
    /// Which rank is asked about; `None` for the fullest.
    pub rank: Option<u64>,
}

/// What a rank of the job needs.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Which rank.
    pub rank: u64,
    /// Tensors on the GPU and its host.
    pub on_gpu: Prediction,
    /// Slack of PyTorch's allocator: memory it has reserved and no tensor uses.
    pub slack: Estimate,
    /// What lies on the GPU beside tensors.
    pub terms: Vec<Term>,
    /// What a process of the job takes of its host beside tensors.
    pub process: Estimate,
    /// States on disk, at the places they would be held in otherwise.
    pub disk: Rest,
    /// Pinned buffers through which they are read and written.
    pub swap: Bytes,
    /// How near the program is to the model.
    pub fidelity: Fidelity,
    /// How far the activations of a stand-in were off for recorded models of its class.
    pub activation_error: Option<ErrorRange>,
    /// How far runs like this lay from predictions.
    pub interval: Interval,
    /// The phase in which the GPU is fullest.
    pub fullest: Phase,
    /// The module or parameter nearest to that peak.
    pub nearest: Option<String>,
    /// Ranks that share a host.
    pub ranks_per_host: u64,
    /// The engine that generates on the same GPU.
    pub rollout: Option<RolloutMemory>,
}

impl Answer {
    /// The answer to a question.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn to(question: &Question<'_>) -> Result<Self, LowerError> {
        let workload = question.workload()?;
        Ok(Self::without_slack(question, &workload).with_slack(question, &workload))
    }

    /// The answer as if PyTorch's allocator wasted nothing, which is a lower bound and much cheaper to have.
    ///
    /// The workload must be that of the question, or of one with the same [`WorkloadKey`](super::WorkloadKey).
    pub fn without_slack(question: &Question<'_>, workload: &Workload) -> Self {
        let (rank, on_gpu) = question.fullest(workload.lowered());
        question.join(workload.lowered(), rank, on_gpu)
    }

    /// With the phase in which the GPU is fullest.
    fn with_fullest(self, lowered: &Lowered) -> Self {
        let fullest = self.fullest_moment().phase;
        let nearest = lowered.nearest_name(fullest, self.on_gpu.peak(fullest));
        Self { fullest, nearest, ..self }
    }

    /// The same with what the allocator wastes.
    #[must_use]
    pub fn with_slack(self, question: &Question<'_>, workload: &Workload) -> Self {
        let gradients = match question.zero.stage {
            Stage::Zero | Stage::One => Gradients::Kept,
            Stage::Two | Stage::Three => Gradients::Bucketed,
        };
        // With overlap, gathers and reductions allocate on streams of their own.
        let overlaps = question.zero.stage == Stage::Three && question.zero.overlap_comm;
        let apart = if overlaps { self.on_gpu.apart() } else { Bytes(0) };
        let apart = Estimate::new(Bytes(0), apart, apart);
        let flattens = matches!(question.zero.stage, Stage::One | Stage::Two)
            && question.recipe.engine == Engine::DeepSpeed
            && flattens_on_device(question.resolved.version());
        let flattening = if flattens { Flattening::OnDevice } else { Flattening::Elsewhere };
        Self { slack: workload.slack(gradients, flattening) + apart, ..self }
    }

    /// What tensors hold at most: `torch.cuda.max_memory_allocated`.
    pub fn allocated(&self) -> Estimate {
        self.around(self.allocated_bytes())
    }

    /// What PyTorch takes from the driver at most: `torch.cuda.max_memory_reserved`.
    pub fn reserved(&self) -> Estimate {
        self.around(self.allocated_bytes() + self.slack.expected())
    }

    /// What the GPU holds at most, everything included, as `nvidia-smi` shows it.
    pub fn device(&self) -> Estimate {
        let driver = self.beside(Counted::ByDriver);
        let need = |moment: Moment<'_>| {
            let own = if moment.is_cache_empty {
                self.interval.around(moment.tensors + driver)
            } else {
                self.around(self.allocated_with(moment.tensors) + self.slack.expected() + driver)
            };
            own + moment.rollout
        };
        let (first, others) = self.moments();
        let others = others.into_iter().flatten().map(need);
        others.fold(
            need(first),
            |most, other| {
                if other.expected() > most.expected() { other } else { most }
            },
        )
    }

    /// Moments at which the GPU may be fullest: one of training, and where an engine that generates sleeps meanwhile those
    /// at which it is awake.
    fn moments(&self) -> (Moment<'_>, Option<[Moment<'_>; 2]>) {
        let of_phase = |phase: Phase, rollout: Estimate| {
            let peak = self.on_gpu.peak(phase);
            let (alive, tensors) = (&peak.at_device_peak, peak.at(Place::Device));
            Moment { phase, alive, tensors, is_cache_empty: false, rollout }
        };
        let beside = self.rollout.map(|rollout| rollout.beside_training).unwrap_or_default();
        let Some(rollout) = self.rollout.filter(|rollout| rollout.sleeps) else {
            return (of_phase(self.on_gpu.fullest(Place::Device), beside), None);
        };
        let training = of_phase(self.on_gpu.fullest_in_training(), beside);
        let alive = &self.on_gpu.states.after_step;
        // Its cache wakes when what was gathered for its weights is gone.
        let generating = Moment {
            phase: Phase::Generate,
            alive,
            tensors: alive.at(Place::Device),
            is_cache_empty: true,
            rollout: Estimate::exact(rollout.share),
        };
        // Its weights wake to be given new values.
        let weights = Estimate::exact(rollout.weights.min(rollout.share));
        let given = Moment { is_cache_empty: true, ..of_phase(Phase::Generate, weights) };
        (training, Some([generating, given]))
    }

    fn fullest_moment(&self) -> Moment<'_> {
        let taken = |moment: &Moment<'_>| moment.tensors + moment.rollout.expected();
        let (first, others) = self.moments();
        let others = others.into_iter().flatten();
        others.fold(first, |most, other| if taken(&other) > taken(&most) { other } else { most })
    }

    /// What the engine that generates takes when the GPU is fullest.
    pub fn rollout_at_peak(&self) -> Bytes {
        self.fullest_moment().rollout.expected()
    }

    /// A prediction with its bounds: those of published runs, and where activations are those of a stand-in also what it
    /// was off by for recorded models of its class.
    fn around(&self, expected: Bytes) -> Estimate {
        let Some(error) = self.activation_error else { return self.interval.around(expected) };
        let peak = self.at_peak();
        let lent = [Category::Activations, Category::ActivationGradients]
            .map(|category| peak.of_at(category, Place::Device))
            .into_iter()
            .sum::<Bytes>()
            .min(expected);
        let (least, most) = error.real_per_predicted();
        let rest = (expected - lent).0 as f64;
        let with = |share: f64| Bytes::whole(lent.0 as f64 * share + rest);
        let low = self.interval.around(with(least)).low().min(expected);
        let high = self.interval.around(with(most)).high().max(expected);
        Estimate::new(low, expected, high)
    }

    fn allocated_bytes(&self) -> Bytes {
        self.allocated_with(self.on_gpu.most(Place::Device))
    }

    fn allocated_with(&self, tensors: Bytes) -> Bytes {
        tensors + self.on_gpu.buffers + self.on_gpu.batch + self.beside(Counted::ByPyTorch)
    }

    fn beside(&self, counted: Counted) -> Bytes {
        let terms = self.terms.iter().filter(|term| term.counted == counted);
        terms.map(|term| term.bytes.expected()).sum()
    }

    /// What models that are not trained take of the GPU.
    pub fn other_models(&self) -> Bytes {
        self.on_gpu.frozen.iter().map(|model| model.rest.at(Place::Device)).sum()
    }

    /// What one process takes of its host at most, pinned and not.
    pub fn host(&self) -> Estimate {
        Estimate::exact(self.on_host().total() + self.swap) + self.process
    }

    /// Tensors that one process holds in its host at most, pinned and not.
    pub fn on_host(&self) -> Rest {
        let phases = self.on_gpu.phases();
        let alive = phases.into_iter().map(|phase| &self.on_gpu.peak(phase).on_host);
        let fullest = alive.max_by_key(|rest| rest.total());
        fullest.map(|rest| rest.minus(&self.disk)).unwrap_or_default()
    }

    /// What all processes of a host take together.
    pub fn node(&self) -> Estimate {
        self.host().times(self.ranks_per_host)
    }

    /// What is on the GPU when it is fullest.
    pub fn at_peak(&self) -> &Rest {
        self.fullest_moment().alive
    }

    /// Tensors, and the engine that generates, at the fullest moment.
    pub(super) fn tensors_and_rollout(&self) -> Bytes {
        let fullest = self.fullest_moment();
        fullest.tensors + fullest.rollout.expected() + self.on_gpu.batch
    }
}

/// A moment at which the GPU may be fullest.
struct Moment<'a> {
    phase: Phase,
    /// The tensors that are alive.
    alive: &'a Rest,
    /// What they take.
    tensors: Bytes,
    /// Whether PyTorch has given back what no tensor uses.
    is_cache_empty: bool,
    /// What the engine that generates takes beside them.
    rollout: Estimate,
}

/// Interpreter, PyTorch and DeepSpeed in a process that uses a GPU, in GiB.
const PROCESS_GIB: [f64; 3] = [1.5, 3.0, 6.0];

impl Question<'_> {
    fn conditions(&self, options: Options) -> Conditions {
        let element = self.resolved.precision().element_size();
        Conditions::of(self.zero, element, self.micro_batch, options)
    }

    /// Groups of ranks that have sequences of their own.
    pub fn sequence_groups(&self) -> u64 {
        self.recipe.groups(self.cluster.world_size())
    }

    /// What decides the workload.
    pub fn workload_key(&self) -> WorkloadKey {
        let kernels = if self.cluster.computes_on_host() { Kernels::Cpu } else { Kernels::Cuda };
        let options = Options { kernels, ..Options::default() };
        WorkloadKey { recipe: self.recipe.clone(), conditions: self.conditions(options) }
    }

    /// What a micro batch does on a GPU.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn workload(&self) -> Result<Workload, LowerError> {
        Workload::new(self.model, self.workload_key())
    }

    /// The step of the first rank, which is that of all.
    pub fn step_program(&self, workload: &Workload) -> StepProgram {
        let (lowered, world) = (workload.lowered(), self.cluster.world_size());
        let rank = lowered.rank(self.resolved, self.zero, world, 0);
        StepProgram::of(lowered, &rank, self.resolved.clips_gradients())
    }

    /// Tensors of a rank as CPU ranks were measured to hold them.
    ///
    /// # Errors
    ///
    /// If the model cannot be lowered.
    pub fn tensors(&self, rank: u64) -> Result<Prediction, LowerError> {
        let as_measured = Options { accounting: Accounting::Recorded, ..Options::default() };
        let lowered = Lowered::new(self.model, self.recipe, &self.conditions(as_measured))?;
        Ok(self.predict(&lowered, rank, Counting::AS_MEASURED))
    }

    fn predict(&self, lowered: &Lowered, rank: u64, counting: Counting) -> Prediction {
        let world = self.cluster.world_size();
        Prediction::new(lowered, &lowered.rank(self.resolved, self.zero, world, rank), counting)
    }

    /// The rank asked about, or the one whose GPU is fullest. Ranks differ by their padding only: the first has
    /// none, the last has all of it.
    fn fullest(&self, lowered: &Lowered) -> (u64, Prediction) {
        let predict = |rank| (rank, self.predict(lowered, rank, Counting::default()));
        if let Some(rank) = self.rank {
            return predict(rank);
        }
        let first = predict(0);
        let last = self.cluster.world_size().saturating_sub(1);
        if last == 0 || self.zero.stage == Stage::Three || self.zero.stage == Stage::Zero {
            return first;
        }
        let last = predict(last);
        if last.1.most(Place::Device) > first.1.most(Place::Device) { last } else { first }
    }

    fn join(&self, lowered: &Lowered, rank: u64, on_gpu: Prediction) -> Answer {
        Answer {
            rank,
            slack: Estimate::default(),
            terms: Machine::new(self.cluster, self.more_groups()).terms(),
            process: share(Bytes::GIB, PROCESS_GIB),
            disk: disk(self.zero, &on_gpu),
            swap: swap(self.zero, &on_gpu),
            fidelity: lowered.fidelity(),
            activation_error: lowered.stand_in_error(),
            interval: Group::of(self.recipe.method.base(self.model).is_some())
                .interval_with(&self.cluster.own_runs),
            fullest: Phase::Init,
            nearest: None,
            ranks_per_host: self.cluster.gpus.layout.gpus_per_node,
            rollout: RolloutMemory::of(&self.recipe.task, self.model, self.cluster),
            on_gpu,
        }
        .with_fullest(lowered)
    }

    /// Process groups beyond those every job has.
    fn more_groups(&self) -> u64 {
        u64::from(self.zero.hpz_partition_size > 1)
            + u64::from(self.zero.mics_shard_size.is_some())
            + u64::from(self.recipe.long_context.sequence_ranks > 1)
            + u64::from(self.recipe.tensor.ranks > 1)
    }
}

/// States that live on disk: those of an optimizer or parameters offloaded there. fp32 gradients of an offloaded
/// optimizer are written to it bucket by bucket (`partition_grads` in DeepSpeed's `runtime/zero/stage3.py`).
fn disk(zero: &Zero, prediction: &Prediction) -> Rest {
    let on_disk = |device: &OffloadDevice| matches!(device, OffloadDevice::Nvme(_));
    let optimizer = zero.offload_optimizer.as_ref().is_some_and(|offload| on_disk(&offload.device));
    let weights = zero.offload_param.as_ref().is_some_and(|offload| on_disk(&offload.device));
    let mut disk = Rest::default();
    for (category, place, bytes) in prediction.states.after_step.iter() {
        let is_there = match category {
            Category::Master
            | Category::MasterGradients
            | Category::FirstMoment
            | Category::SecondMoment => optimizer,
            Category::HostParameters => weights,
            _ => false,
        };
        if is_there && place != Place::Device {
            disk.add(category, place, bytes.0);
        }
    }
    disk
}

/// Buffers between host and disk, from the engine's code: so many of the largest sub-group, so many of a given size.
fn swap(zero: &Zero, prediction: &Prediction) -> Bytes {
    let on_disk = |device: &OffloadDevice| matches!(device, OffloadDevice::Nvme(_));
    let master = prediction.states.after_step.of_at(Category::Master, Place::Host).0;
    let largest = master.min(zero.sub_group.0.saturating_mul(4));
    let optimizer = zero.offload_optimizer.as_ref().filter(|offload| on_disk(&offload.device));
    let parameters = zero.offload_param.as_ref().filter(|offload| on_disk(&offload.device));
    let of_optimizer = optimizer.map_or(0, |offload| offload.buffer_count * largest);
    let of_parameters =
        parameters.map_or(0, |offload| offload.buffer_count * offload.buffer_size.0 * 2);
    Bytes(of_optimizer + of_parameters)
}

fn share(bytes: Bytes, [low, expected, high]: [f64; 3]) -> Estimate {
    let of = |part: f64| Bytes::whole(bytes.0 as f64 * part);
    Estimate::new(of(low), of(expected), of(high))
}
