//! From a model, a recipe and a micro batch to what one rank runs.
//!
//! [`Lowered`] holds everything that does not depend on the number of ranks or on ZeRO's sizes, so that many configs
//! can be asked about one of them.

mod critic;
mod frozen;
mod long_context;
mod recipe;
mod shape;
mod tensor_parallel;
mod tower;

use std::borrow::Cow;
use std::collections::BTreeSet;

use zeropilot_config::python::PyValue;
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::{LeafModules, Stage, Zero};
use zeropilot_model::architecture::{Module, ParameterEntry};
use zeropilot_model::image::ImageSize;
use zeropilot_model::lora::LoraError;
use zeropilot_model::quantization::{BaseFormat, QuantizedBase};
use zeropilot_model::{ErrorRange, Model, StandInClass};
use zeropilot_units::{Bytes, ElementSize, Elements};

use self::critic::Value;
pub use self::frozen::FrozenModel;
pub use self::long_context::{LongContextError, LossProblem};
pub use self::recipe::{Images, Method, Recipe};
pub use self::tensor_parallel::{NotFollowed, follow};
pub use self::tower::{differentiates_frozen_tower, image_tokens, sees};
use crate::family::{AsRerun, Family, Program, Setup};
use crate::micro_step::{MicroStep, modules};
use crate::model::{Model as ProgramModel, pattern};
use crate::primitive::QuantizedProduct;
use crate::shape::{
    Batch, Fold, Lora, LoraTargets, MlpTiles, Quantized, TensorParallel, Tower, Training,
};
use crate::tape::{Mark, Options, Tape, Trace};
use crate::task::{Objective, Other, Ran, Sizes, Stage as Scene, Task, generation_bytes, run};
use crate::zero::gather::Modules;
use crate::zero::{BaseOptimizer, Engine, Loading, Parameter, Run};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The adapters do not fit the model.
    #[error(transparent)]
    Lora(#[from] LoraError),
    /// Nothing of the model is trained.
    #[error("no parameter is trained")]
    NothingTrained,
    /// An image that its processor refuses.
    #[error(
        "the image processor rejects an image of {size} pixels: one side is over 200 times the other"
    )]
    OddImage {
        /// Its size.
        size: ImageSize,
    },
    /// More images than any batch has.
    #[error("a micro-batch can have at most {most} images")]
    TooManyImages {
        /// As many as are allowed.
        most: u64,
    },
    /// The tokens of the images do not fit the sequence.
    #[error("the images of a sequence become {tokens} tokens, more than the sequence of {length}")]
    ImagesTooLong {
        /// Tokens of the images of a sequence.
        tokens: u64,
        /// Tokens of the sequence.
        length: u64,
    },
    /// Long sequences are not trained this way.
    #[error(transparent)]
    LongContext(#[from] LongContextError),
    /// A task that needs what this model does not return.
    #[error("zeropilot models this task only for causal language models")]
    TaskOfLanguageModels,
    /// A batch beyond any machine.
    #[error(
        "a micro-batch of {sequences} sequences of {length} tokens needs more memory than any machine has"
    )]
    TooLarge {
        /// Sequences of a micro batch.
        sequences: u64,
        /// Tokens of each.
        length: u64,
    },
}

/// How near the program of a model is to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fidelity {
    /// The program is the model's own, parameter by parameter.
    Own,
    /// The program is that of a model of similar structure and the same dimensions; what ZeRO keeps is exact all
    /// the same.
    StandIn(Family),
}

/// What decides the program besides model and recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conditions {
    /// Sequences of a micro batch.
    pub micro_batch: u64,
    /// Elements of the model in training.
    pub element: ElementSize,
    /// How programs run: under stage 3 with module events.
    pub options: Options,
    /// What stage 3 gathers as a whole.
    pub leaf_modules: LeafModules,
}

impl Conditions {
    /// Those of a config; module events and stage 3's linear operation are added to `options` as it says.
    pub fn of(zero: &Zero, element: ElementSize, micro_batch: u64, options: Options) -> Self {
        let is_stage_3 = zero.stage == Stage::Three;
        Self {
            micro_batch,
            element,
            options: Options {
                module_events: is_stage_3,
                zero3_linear: is_stage_3 && zero.memory_efficient_linear,
                ..options
            },
            leaf_modules: if is_stage_3 {
                zero.leaf_modules.clone()
            } else {
                LeafModules::default()
            },
        }
    }

    fn is_stage_3(&self) -> bool {
        self.options.module_events
    }
}

/// A model lowered for training.
#[derive(Debug)]
pub struct Lowered {
    setup: Setup,
    program: Box<dyn Program>,
    /// The same for the sequences that run at once before any is learned from, where these are other ones.
    rollout: Option<Rollout>,
    modules: Modules,
    micro_step: MicroStep,
    /// As the program has them.
    own: Vec<Parameter>,
    own_order: Vec<usize>,
    /// As the model has them, where it has others.
    real: Option<Vec<Parameter>>,
    real_order: Vec<usize>,
    fidelity: Fidelity,
    class: Option<StandInClass>,
    task: Task,
    frozen: Vec<FrozenModel>,
    loading: Loading,
    engine: Engine,
    script_optimizer: BaseOptimizer,
    buffers: Bytes,
    batch: Bytes,
    /// As programs run.
    options: Options,
}

/// A program for the sequences that run at once before any is learned from.
#[derive(Debug)]
struct Rollout {
    program: Box<dyn Program>,
    sequences: u64,
}

impl Rollout {
    /// That of PPO: the models judge as many completions at once as its trainer gives them.
    fn new(task: &Task, setup: &Setup, value: Option<&Value>) -> Result<Option<Self>, LowerError> {
        let micro_batch = setup.batch.sequences;
        let sequences = match (task.objective, task.generation) {
            (Objective::Ppo(_), Some(generation)) => generation.piece(micro_batch),
            _ => micro_batch,
        };
        let build = || critic::program(setup, value, sequences);
        let program = (sequences != micro_batch).then(build).transpose()?;
        Ok(program.map(|program| Self { program, sequences }))
    }
}

/// No tensor of a step may come near what 64 bits can count.
const MOST_BYTES: u128 = 1 << 56;

impl Lowered {
    /// Lower a model.
    ///
    /// # Errors
    ///
    /// If the adapters do not fit the model, nothing is trained, or the batch is beyond any machine.
    pub fn new(
        model: &Model,
        recipe: &Recipe,
        conditions: &Conditions,
    ) -> Result<Self, LowerError> {
        let trained = trained_model(model, &recipe.method)?;
        let base = recipe.method.base(model);
        let loading = match base {
            // It is not built under `zero.Init`: every rank loads all of it before DeepSpeed shards it.
            Some(_) => recipe.loading.unwrap_or(Loading::OnDevice(conditions.element)),
            None => recipe.loading(conditions.is_stage_3(), conditions.element),
        };
        let setup = setup(model, &trained, recipe, conditions, loading, base)?;
        let critic = recipe.task.critic.as_ref();
        let value = critic.map(|it| Value::new(it, recipe, conditions, loading)).transpose()?;
        let program = critic::program(&setup, value.as_ref(), setup.batch.sequences)?;
        let rollout = Rollout::new(&recipe.task, &setup, value.as_ref())?;
        let (element, adapters) = (setup.training.element_bytes, adapter_bytes(&setup));
        let mut real = parameters(&trained, recipe, element, adapters);
        if recipe.tensor != TensorParallel::NONE {
            let names = trained.parameters().map(|entry| entry.name);
            for parameter in tensor_parallel::split(&mut real, names, &setup) {
                parameter.elements = Elements(parameter.elements.0 / parameter.parts);
            }
        }
        let of_policy = real.len();
        real.extend(value.iter().flat_map(|value| value.parameters(recipe)));
        if !real.iter().any(|parameter| parameter.trainable) {
            return Err(LowerError::NothingTrained);
        }
        let mut own = program_parameters(program.model(), element, recipe);
        if recipe.tensor != TensorParallel::NONE {
            let infos = program.model().parameters.iter();
            let names = infos.map(|info| program.model().parameter_name(info.parameter.id));
            tensor_parallel::split(&mut own, names, &setup).for_each(drop);
        }
        let options = recipe.options(conditions.options);
        let frozen = frozen::frozen_models(&recipe.task, recipe, conditions)?;
        let step = Traced {
            task: &recipe.task,
            setup: &setup,
            program: &*program,
            rollout: rollout.as_ref(),
            frozen: &frozen,
        };
        let micro_step = step.micro_step(options).ok_or(LowerError::TaskOfLanguageModels)?;
        let own_order: Vec<usize> = micro_step.gradient_order().collect();
        let is_own = own == real
            && shape::program(model).1
            && model.stand_in().is_none()
            && value.as_ref().is_none_or(Value::is_known);
        if let Some(Quantized { base, .. }) = &setup.training.quantized {
            for id in &program.model().quantized {
                pack(&mut own[id.index()], base);
            }
            let (policy, of_value) = real.split_at_mut(of_policy);
            pack_all(policy, &trained, base);
            value.iter().for_each(|value| value.pack(of_value));
        }
        if is_own {
            // Experts in eight bits are packed only in the model.
            own.clone_from(&real);
        }
        Ok(Self {
            modules: modules(program.model()),
            micro_step,
            fidelity: if is_own { Fidelity::Own } else { Fidelity::StandIn(setup.family) },
            class: stand_in_class(model),
            real_order: (0..real.len()).rev().filter(|&index| real[index].trainable).collect(),
            real: (!is_own).then_some(real),
            own,
            own_order,
            task: recipe.task.clone(),
            frozen,
            loading,
            engine: recipe.engine,
            script_optimizer: recipe.optimizer,
            buffers: buffers(&setup, &trained, conditions.is_stage_3())
                + value.map_or(Bytes(0), |value| value.buffers(conditions.is_stage_3())),
            batch: batch_bytes(&setup),
            options,
            rollout,
            program,
            setup,
        })
    }

    /// How near the program is to the model.
    pub fn fidelity(&self) -> Fidelity {
        self.fidelity
    }

    /// Bounds of the error of the activations, where the program is only a stand-in: of models of its class that were
    /// recorded, the class of the family where that is known. `None` also for a known model that sees or hears: those
    /// recorded read text alone.
    pub fn stand_in_error(&self) -> Option<ErrorRange> {
        match self.fidelity {
            Fidelity::Own => None,
            Fidelity::StandIn(_) => {
                self.class.map(|it| it.error(self.setup.switches.checkpointing))
            }
        }
    }

    /// What decides the program.
    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The program.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// The modules and parameters of the program.
    pub fn model(&self) -> &ProgramModel {
        self.program.model()
    }

    /// The parameters each module of the program gathers.
    pub fn modules(&self) -> &Modules {
        &self.modules
    }

    /// The micro step.
    pub fn micro_step(&self) -> &MicroStep {
        &self.micro_step
    }

    /// What it is trained for.
    pub(crate) fn task(&self) -> &Task {
        &self.task
    }

    /// The models that run beside it.
    pub fn frozen(&self) -> &[FrozenModel] {
        &self.frozen
    }

    /// The ranks of their engines beside one of the trained model.
    pub(crate) fn frozen_ranks(&self, rank: &RankOf<'_>) -> Vec<RankOf<'static>> {
        self.frozen.iter().map(|model| model.rank(rank)).collect()
    }

    /// A micro step on a tape that runs as `options` say.
    pub fn trace(&self, options: Options) -> Trace {
        self.traced().trace(options).unwrap_or_default()
    }

    fn traced(&self) -> Traced<'_> {
        let Self { task, setup, program, rollout, frozen, .. } = self;
        Traced { task, setup, program: &**program, rollout: rollout.as_ref(), frozen }
    }

    /// The micro step with what happens to modules, where ZeRO does not need to know.
    pub(crate) fn micro_step_by_modules(&self) -> Option<MicroStep> {
        let options = Options { module_events: true, ..self.options };
        (!self.options.module_events).then(|| self.traced().micro_step(options))?
    }

    pub(crate) fn loading(&self) -> Loading {
        self.loading
    }

    /// Bytes of each trained parameter of the program.
    pub(crate) fn trained_bytes(&self) -> Vec<Bytes> {
        let element = u64::from(self.setup.training.element_bytes);
        let trained = self.own.iter().filter(|parameter| parameter.trainable);
        trained
            .map(|parameter| {
                let element = parameter.element.map_or(element, ElementSize::bytes);
                Bytes(parameter.elements.0 * element)
            })
            .collect()
    }

    /// Buffers of the model, and scales of quantized weights.
    pub fn buffers(&self) -> Bytes {
        self.buffers
    }

    /// The token ids, labels and masks of a micro batch.
    pub fn batch(&self) -> Bytes {
        self.batch
    }

    /// One rank of a run of the program.
    pub fn run<'a>(&'a self, rank: &'a RankOf<'a>) -> Run<'a> {
        rank.run(&self.own, &self.own_order)
    }

    /// The same of the model itself, where the program is only a stand-in.
    pub(crate) fn real_run<'a>(&'a self, rank: &'a RankOf<'a>) -> Option<Run<'a>> {
        self.real.as_ref().map(|real| rank.run(real, &self.real_order))
    }

    /// A rank of all there are, under a config.
    pub fn rank<'a>(
        &self,
        resolved: &ResolvedConfig,
        zero: &'a Zero,
        world: u64,
        rank: u64,
    ) -> RankOf<'a> {
        RankOf {
            engine: self.engine,
            zero: Cow::Borrowed(zero),
            precision: resolved.precision(),
            accumulation_type: resolved.gradient_accumulation_type(),
            communication_type: match self.setup.shares_sequence() {
                false => resolved.communication_type(),
                true => Some(long_context::communication_type(resolved, zero)),
            },
            optimizer: optimizer(resolved, zero, self.script_optimizer),
            accumulation_steps: resolved.batch().map_or(1, |batch| batch.accumulation),
            version: resolved.version(),
            // Those that share layers have the same part of what ZeRO shards.
            world: world / self.setup.tensor.ranks,
            rank: rank / self.setup.tensor.ranks,
            sequence_ranks: self.setup.long_context.sequence_ranks,
            tensor_ranks: self.setup.tensor.ranks,
            tensor_rank: rank % self.setup.tensor.ranks,
        }
    }
}

/// A rank of a run, before its parameters are known.
#[derive(Debug, Clone)]
pub struct RankOf<'a> {
    engine: Engine,
    zero: Cow<'a, Zero>,
    precision: zeropilot_config::settings::Precision,
    accumulation_type: Option<zeropilot_config::settings::DataType>,
    communication_type: Option<zeropilot_config::settings::DataType>,
    optimizer: BaseOptimizer,
    accumulation_steps: u64,
    version: EngineVersion,
    world: u64,
    rank: u64,
    sequence_ranks: u64,
    tensor_ranks: u64,
    tensor_rank: u64,
}

impl<'a> RankOf<'a> {
    /// The same rank with other settings.
    fn with(&self, zero: Zero) -> RankOf<'static> {
        RankOf { zero: Cow::Owned(zero), ..*self }
    }

    fn run(&'a self, parameters: &'a [Parameter], gradient_order: &'a [usize]) -> Run<'a> {
        Run {
            parameters,
            gradient_order,
            engine: self.engine,
            zero: &self.zero,
            precision: self.precision,
            accumulation_type: self.accumulation_type,
            communication_type: self.communication_type,
            optimizer: self.optimizer,
            accumulation_steps: self.accumulation_steps,
            version: self.version,
            world: self.world,
            rank: self.rank,
            sequence_ranks: self.sequence_ranks,
            tensor_ranks: self.tensor_ranks,
            tensor_rank: self.tensor_rank,
        }
    }
}

/// The optimizer under ZeRO: what the config names, else what the script brings; an offloaded one runs on the host.
fn optimizer(resolved: &ResolvedConfig, zero: &Zero, script: BaseOptimizer) -> BaseOptimizer {
    let on_host = zero.offload_optimizer.is_some();
    let Some(named) = resolved.optimizer() else {
        return if on_host { BaseOptimizer::CpuAdam } else { script };
    };
    let flag = |key: &str| named.parameters.get(key).is_some_and(PyValue::is_true);
    match (named.name.to_ascii_lowercase().as_str(), on_host) {
        ("lion", true) => BaseOptimizer::CpuLion,
        ("lion", false) => BaseOptimizer::Lion,
        ("adagrad", true) => BaseOptimizer::CpuAdagrad,
        ("adagrad", false) => BaseOptimizer::Adagrad,
        ("sgd", _) if flag("momentum") => BaseOptimizer::Momentum,
        ("sgd", _) => BaseOptimizer::Sgd,
        // PyTorch's own stays PyTorch's own on the host too.
        ("adam" | "adamw", _) if flag("torch_adam") => BaseOptimizer::TorchAdam,
        (_, true) => BaseOptimizer::CpuAdam,
        _ => BaseOptimizer::FusedAdam,
    }
}

/// The model with what is trained marked, and with adapters.
fn trained_model(model: &Model, method: &Method) -> Result<Model, LowerError> {
    Ok(match method {
        Method::Full => model.clone(),
        Method::Lora(lora) | Method::QLora { lora, .. } => lora.apply(model)?,
    })
}

/// What a model is likened to: as its config tells, else as its family is; files alone tell of nothing but a decoder.
fn stand_in_class(model: &Model) -> Option<StandInClass> {
    let of_family = || model.family().map(StandInClass::of);
    let class = model.stand_in().or_else(of_family).unwrap_or(StandInClass::Gated);
    (model.parts().len() == 1).then_some(class)
}

fn setup(
    model: &Model,
    trained: &Model,
    recipe: &Recipe,
    conditions: &Conditions,
    loading: Loading,
    base: Option<QuantizedBase>,
) -> Result<Setup, LowerError> {
    let (family, _) = shape::program(model);
    let shape = recipe.tensor.split(shape::shape(model));
    let length = recipe.long_context.share(recipe.sequence);
    let batch = Batch {
        sequences: conditions.micro_batch * recipe.task.objective.rows(),
        length,
        target_length: recipe.target.unwrap_or(length),
    };
    check_size(&shape, batch)?;
    let tower = tower::tower(model, recipe.images.as_ref(), batch.sequences)?;
    check_images(&tower, batch)?;
    let mut switches = shape::switches(model, family);
    let is_tied = switches.tied.unwrap_or_default();
    long_context::check(family, &shape, &tower, recipe, is_tied)?;
    let element = conditions.element.bytes();
    // PEFT makes adapters in 32 bits; DeepSpeed casts them with the rest unless the model was built partitioned.
    let is_partitioned = loading == Loading::Partitioned && conditions.is_stage_3();
    let stays_wide = is_partitioned || recipe.engine == Engine::PyTorch;
    let is_wide = stays_wide && recipe.adapters_in_fp32;
    #[allow(clippy::cast_possible_truncation)]
    let training = Training {
        element_bytes: element as u8,
        quantized: base.map(|base| Quantized { product: product(&base, recipe), base }),
        lora: recipe.method.lora().map(|lora| Lora {
            targets: LoraTargets::Named(wrapped_names(trained)),
            rank: lora.rank,
            has_dropout: lora.dropout,
            trained_modules: lora.modules_to_save.clone(),
            folds: folds(trained),
            element_bytes: if is_wide { 4 } else { element as u8 },
        }),
        leaves: leaf_modules(trained, &conditions.leaf_modules),
        // The parameters of a stand-in have other names: it trains all of them, which never takes less.
        // Adapters freeze everything else by themselves.
        frozen: if recipe.method.lora().is_some() {
            BTreeSet::new()
        } else {
            frozen_names(trained)
        },
    };
    let is_in_mlp = |name: &String| name.contains(".mlp.");
    if recipe.long_context.mlp_tiles != MlpTiles::Whole
        && wrapped_names(trained).iter().any(is_in_mlp)
    {
        return Err(LongContextError::TiledAdapters.into());
    }
    switches.checkpointing = recipe.checkpointing;
    // A tower that names its input layer is differentiated under checkpointing even if it is frozen.
    let has_tower = matches!(tower, Tower::Vision(_));
    // With a frozen embedding nothing would reach the checkpoints; every front end switches this on.
    let by_default = recipe.checkpointing && (training.lora.is_some() || has_tower);
    switches.input_gradients = recipe.input_gradients.unwrap_or(by_default);
    let task = &recipe.task;
    Ok(Setup {
        family,
        shape,
        tower,
        switches,
        training,
        batch,
        head: task.objective.head(recipe.loss),
        completion: task.completion,
        long_context: recipe.long_context,
        tensor: recipe.tensor,
        keeps_cache: false,
        keeps_hidden: task.objective.keeps_hidden(),
    })
}

/// All that runs in a micro step.
struct Traced<'a> {
    task: &'a Task,
    setup: &'a Setup,
    program: &'a dyn Program,
    rollout: Option<&'a Rollout>,
    frozen: &'a [FrozenModel],
}

impl Traced<'_> {
    /// The micro step; `None` if the model does not return what its objective needs.
    fn micro_step(&self, options: Options) -> Option<MicroStep> {
        if self.task.objective == Objective::NextToken {
            return Some(MicroStep::of_layers(self.setup, self.program, options));
        }
        let trace = self.trace(options)?;
        let is_reused = self.task.generation.is_some_and(|generation| generation.steps > 1);
        let pieces = self.task.pieces(self.setup.batch.sequences);
        Some(MicroStep { is_reused, pieces, ..MicroStep::from_trace(&trace, options) })
    }

    /// The same on a tape.
    fn trace(&self, options: Options) -> Option<Trace> {
        let Self { task, setup, program, rollout, frozen } = *self;
        let tape = Tape::new(options);
        {
            let others: Vec<Other<'_>> =
                frozen.iter().map(|it| (it.role(), it.returned())).collect();
            let sizes = Sizes::of(setup);
            let rollout = rollout.map(|Rollout { program, sequences }| {
                let batch = Batch { sequences: *sequences, ..setup.batch };
                (&**program, Sizes { batch, ..sizes })
            });
            let bytes = |generation| generation_bytes(generation, setup, program.model(), options);
            let generation = task.generation.map(|generation| (generation, bytes(generation)));
            let adapters_off = task.adapters_off;
            let scene = Scene {
                program,
                rollout,
                tape: &tape,
                sizes,
                others: &others,
                adapters_off,
                generation,
            };
            let Ran { loss, held } = run(task.objective, &scene)?;
            tape.mark(Mark::Saved);
            tape.backward(&loss, &AsRerun(program));
            drop(held);
            tape.drop_kept();
        }
        Some(tape.into_trace())
    }
}

/// What a product with a weight of the base keeps.
fn product(base: &QuantizedBase, recipe: &Recipe) -> QuantizedProduct {
    match base.format {
        BaseFormat::Int8 => QuantizedProduct::Input,
        _ => recipe.quantized_product,
    }
}

fn check_images(tower: &Tower, batch: Batch) -> Result<(), LowerError> {
    let Tower::Vision(vision) = tower else { return Ok(()) };
    let tokens = vision.tokens() / batch.sequences.max(1);
    // The widest tensor of a tower is that of a feed-forward part.
    let widest = u128::from(vision.intermediate.max(4 * vision.hidden) * 8);
    if u128::from(vision.patches()).saturating_mul(widest) >= MOST_BYTES {
        return Err(LowerError::TooLarge { sequences: batch.sequences, length: batch.length });
    }
    if tokens > batch.length {
        return Err(LowerError::ImagesTooLong { tokens, length: batch.length });
    }
    Ok(())
}

fn check_size(shape: &crate::shape::Shape, batch: Batch) -> Result<(), LowerError> {
    let wide = |number: u64| u128::from(number);
    let length = batch.length.max(batch.target_length);
    let tokens = wide(batch.sequences).saturating_mul(wide(length));
    let widest = wide(shape.vocabulary)
        .max(wide(shape.hidden))
        .max(wide(shape.intermediate) * 2)
        .max(wide(shape.heads).saturating_mul(wide(length)))
        .max(wide(shape.expert_intermediate).saturating_mul(wide(shape.experts_per_token) * 2));
    if tokens.saturating_mul(widest).saturating_mul(8) < MOST_BYTES {
        return Ok(());
    }
    Err(LowerError::TooLarge { sequences: batch.sequences, length })
}

/// Names of the parameters that are not trained: as a pattern where that holds in all layers.
fn frozen_names(trained: &Model) -> BTreeSet<String> {
    let is_frozen = |entry: &ParameterEntry<'_>| !entry.parameter.trainable;
    if !trained.parameters().any(|entry| is_frozen(&entry)) {
        return BTreeSet::new();
    }
    let somewhere: BTreeSet<String> =
        trained.trainable().map(|entry| pattern(&entry.name)).collect();
    let frozen = trained.parameters().filter(is_frozen).map(|entry| {
        let everywhere = pattern(&entry.name);
        if somewhere.contains(&everywhere) { entry.name } else { everywhere }
    });
    frozen.collect()
}

/// Names of the modules that have an adapter, with numbers as `*`.
fn wrapped_names(adapted: &Model) -> Vec<String> {
    let wrapped = adapted.parameters().filter_map(|entry| {
        let name = entry.name.strip_prefix("base_model.model.")?;
        let ends = [".lora_A.", ".lora_embedding_A."];
        let wrapped = ends.iter().find_map(|end| name.find(end).map(|at| &name[..at]))?;
        Some(pattern(wrapped))
    });
    wrapped.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Names of the modules that stage 3 gathers as a whole.
fn leaf_modules(trained: &Model, listed: &LeafModules) -> BTreeSet<String> {
    let by_name = !listed.names.is_empty() || !listed.name_suffixes.is_empty();
    if !by_name && !trained.root().has(&|module| listed.include_class(&module.class)) {
        return BTreeSet::new();
    }
    let listed = trained.modules().filter(|it| listed.include(&it.name, &it.module.class));
    listed.map(|entry| entry.name).collect()
}

/// Adapters of tensors that are no layers, each kind once, the outermost wrapper of a module first.
fn folds(adapted: &Model) -> Vec<Fold> {
    let mut all = Vec::new();
    if !adapted.root().has(&Module::is_parameter_wrapper) {
        return all;
    }
    for entry in adapted.modules().filter(|entry| entry.module.is_parameter_wrapper()) {
        let Some(name) = entry.name.strip_prefix("base_model.model.") else { continue };
        let Some((parameter, elements)) = entry.module.wrapped_parameter() else { continue };
        let module = pattern(name.trim_end_matches(".base_layer"));
        let fold = Fold { module, parameter: parameter.to_owned(), elements };
        if !all.contains(&fold) {
            all.push(fold);
        }
    }
    all
}

fn adapter_bytes(setup: &Setup) -> u8 {
    setup.training.lora.as_ref().map_or(setup.training.element_bytes, |lora| lora.element_bytes)
}

/// The parameters of a model as the optimizer sees them.
fn parameters(trained: &Model, recipe: &Recipe, element: u8, adapters: u8) -> Vec<Parameter> {
    trained
        .parameters()
        .map(|entry| {
            let elements = entry.parameter.elements().unwrap_or(0);
            let is_adapter = entry.name.contains("lora_");
            Parameter {
                elements: Elements(elements),
                parts: 1,
                element: (is_adapter && adapters != element).then_some(ElementSize::Four),
                trainable: entry.parameter.trainable,
                group: group(&entry.name, recipe),
            }
        })
        .collect()
}

/// Packs the parameters of a model whose base is quantized: what was a matrix becomes a row of bytes.
fn pack_all(parameters: &mut [Parameter], trained: &Model, base: &QuantizedBase) {
    for (parameter, entry) in parameters.iter_mut().zip(trained.parameters()) {
        if base.includes(trained, &entry) && !parameter.trainable {
            pack(parameter, base);
        }
    }
}

fn pack(parameter: &mut Parameter, base: &QuantizedBase) {
    parameter.elements = Elements(base.format.parameter(parameter.elements).0);
    parameter.element = Some(ElementSize::One);
}

/// The optimizer's parameter group of a parameter.
fn group(name: &str, recipe: &Recipe) -> usize {
    usize::from(recipe.norms_apart && name.contains("norm"))
}

fn program_parameters(model: &ProgramModel, element: u8, recipe: &Recipe) -> Vec<Parameter> {
    let as_seen = |parameter: &crate::model::Parameter| Parameter {
        elements: Elements(parameter.elements),
        parts: 1,
        element: (parameter.element_bytes != element).then_some(ElementSize::Four),
        trainable: parameter.is_trainable,
        group: if recipe.norms_apart {
            group(&model.parameter_name(parameter.id), recipe)
        } else {
            0
        },
    };
    model.parameters.iter().map(|info| as_seen(&info.parameter)).collect()
}

/// Buffers of the model: rotary frequencies, and with a quantized base the scales of its weights.
fn buffers(setup: &Setup, trained: &Model, is_stage_3: bool) -> Bytes {
    // The frequencies and the copy kept beside them, in 32 bits.
    let frequencies = setup.shape.head_width / 2 * 4 * 2;
    let Some(Quantized { base, .. }) = &setup.training.quantized else {
        return Bytes(frequencies);
    };
    let stored = base.size(trained).unwrap_or_default().stored;
    // bitsandbytes keeps a second reference to weights of eight bits, so that sharding frees nothing.
    let whole = if is_stage_3 && base.format == BaseFormat::Int8 { stored.parameter.0 } else { 0 };
    Bytes(frequencies + stored.beside.0 + whole)
}

/// Token ids, labels and the attention mask, 64-bit numbers each; pixels and frames of sound.
fn batch_bytes(setup: &Setup) -> Bytes {
    let Batch { sequences, length, target_length } = setup.batch;
    let labels = if setup.family == Family::T5 { target_length } else { length };
    let tokens = sequences * (2 * length + labels) * 8;
    Bytes(match &setup.tower {
        Tower::None => tokens,
        // 32-bit colours.
        Tower::Vision(vision) => tokens + vision.pixels() * 4,
        // The labels are all the tokens there are.
        Tower::Speech(speech) => {
            sequences * (length * 8 + 2 * speech.positions * speech.mel_bins * 4)
        }
    })
}
