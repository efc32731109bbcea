//! From a model, a recipe and a micro batch to what one rank runs.
//!
//! [`Lowered`] holds everything that does not depend on the number of ranks or on ZeRO's sizes, so that many configs
//! can be asked about one of them.

mod recipe;
mod shape;

use zeropilot_config::python::PyValue;
use zeropilot_config::resolve::ResolvedConfig;
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::{Stage, Zero};
use zeropilot_model::Model;
use zeropilot_model::lora::LoraError;
use zeropilot_model::quantization::{Nf4Size, ScaleStorage};
use zeropilot_units::{Bytes, ElementSize, Elements};

pub use self::recipe::{Method, Recipe};
use crate::family::{Family, Program, Setup, build};
use crate::micro_step::{MicroStep, modules};
use crate::model::Model as ProgramModel;
use crate::primitive::QuantizedProduct;
use crate::shape::{Batch, Lora, LoraTargets, Training};
use crate::tape::Options;
use crate::zero::gather::Modules;
use crate::zero::{BaseOptimizer, Engine, Loading, Parameter, Run};

/// Why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LowerError {
    /// The adapters do not fit the model.
    #[error(transparent)]
    Lora(#[from] LoraError),
    /// Nothing of the model is trained.
    #[error("nothing is trained")]
    NothingTrained,
    /// A batch beyond any machine.
    #[error("a micro batch of {sequences} sequences of {length} tokens is beyond any machine")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Sequences of a micro batch.
    pub micro_batch: u64,
    /// Elements of the model in training.
    pub element: ElementSize,
    /// How programs run: under stage 3 with module events.
    pub options: Options,
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
    modules: Modules,
    micro_step: MicroStep,
    /// As the program has them.
    own: Vec<Parameter>,
    own_order: Vec<usize>,
    /// As the model has them, where it has others.
    real: Option<Vec<Parameter>>,
    real_order: Vec<usize>,
    fidelity: Fidelity,
    loading: Loading,
    engine: Engine,
    script_optimizer: BaseOptimizer,
    buffers: Bytes,
    batch: Bytes,
}

/// No tensor of a step may come near what 64 bits can count.
const MOST_BYTES: u128 = 1 << 56;

impl Lowered {
    /// Lower a model.
    ///
    /// # Errors
    ///
    /// If the adapters do not fit the model, nothing is trained, or the batch is beyond any machine.
    pub fn new(model: &Model, recipe: &Recipe, conditions: Conditions) -> Result<Self, LowerError> {
        let trained = trained_model(model, &recipe.method)?;
        let loading = recipe.loading(conditions.is_stage_3(), conditions.element);
        let setup = setup(model, &trained, recipe, conditions, loading)?;
        let program = build(&setup);
        let (element, adapters) = (setup.training.element_bytes, adapter_bytes(&setup));
        let real = parameters(&trained, recipe, element, adapters);
        if !real.iter().any(|parameter| parameter.trainable) {
            return Err(LowerError::NothingTrained);
        }
        let own = program_parameters(program.model(), element, recipe);
        let options = recipe.options(conditions.options);
        let micro_step = MicroStep::of_layers(&setup, &*program, options);
        let own_order: Vec<usize> = micro_step.gradient_order().collect();
        let is_own = own == real && shape::program(model).1;
        Ok(Self {
            modules: modules(program.model()),
            micro_step,
            fidelity: if is_own { Fidelity::Own } else { Fidelity::StandIn(setup.family) },
            real_order: (0..real.len()).rev().filter(|&index| real[index].trainable).collect(),
            real: (!is_own).then_some(real),
            own,
            own_order,
            loading,
            engine: recipe.engine,
            script_optimizer: recipe.optimizer,
            buffers: buffers(&setup, &trained, &recipe.method),
            batch: batch_bytes(&setup),
            program,
            setup,
        })
    }

    /// How near the program is to the model.
    pub fn fidelity(&self) -> Fidelity {
        self.fidelity
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

    /// A rank under a config.
    pub fn rank<'a>(
        &self,
        resolved: &ResolvedConfig,
        zero: &'a Zero,
        world: u64,
        rank: u64,
    ) -> RankOf<'a> {
        RankOf {
            engine: self.engine,
            zero,
            precision: resolved.precision(),
            accumulation_type: resolved.gradient_accumulation_type(),
            communication_type: resolved.communication_type(),
            optimizer: optimizer(resolved, zero, self.script_optimizer),
            accumulation_steps: resolved.batch().map_or(1, |batch| batch.accumulation),
            version: resolved.version(),
            world,
            rank,
        }
    }
}

/// A rank of a run, before its parameters are known.
#[derive(Debug, Clone)]
pub struct RankOf<'a> {
    engine: Engine,
    zero: &'a Zero,
    precision: zeropilot_config::settings::Precision,
    accumulation_type: Option<zeropilot_config::settings::DataType>,
    communication_type: Option<zeropilot_config::settings::DataType>,
    optimizer: BaseOptimizer,
    accumulation_steps: u64,
    version: EngineVersion,
    world: u64,
    rank: u64,
}

impl<'a> RankOf<'a> {
    fn run(&'a self, parameters: &'a [Parameter], gradient_order: &'a [usize]) -> Run<'a> {
        Run {
            parameters,
            gradient_order,
            engine: self.engine,
            zero: self.zero,
            precision: self.precision,
            accumulation_type: self.accumulation_type,
            communication_type: self.communication_type,
            optimizer: self.optimizer,
            accumulation_steps: self.accumulation_steps,
            version: self.version,
            world: self.world,
            rank: self.rank,
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
        Method::Only(names) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            model.train_only(&names)
        }
    })
}

fn setup(
    model: &Model,
    trained: &Model,
    recipe: &Recipe,
    conditions: Conditions,
    loading: Loading,
) -> Result<Setup, LowerError> {
    let (family, is_own) = shape::program(model);
    let shape = shape::shape(model);
    let batch = Batch {
        sequences: conditions.micro_batch,
        length: recipe.sequence,
        target_length: recipe.target.unwrap_or(recipe.sequence),
    };
    check_size(&shape, batch)?;
    let element = conditions.element.bytes();
    // PEFT makes adapters in 32 bits; DeepSpeed casts them with the rest unless the model was built partitioned.
    let is_partitioned = loading == Loading::Partitioned && conditions.is_stage_3();
    let stays_wide = is_partitioned || recipe.engine == Engine::PyTorch;
    let is_wide = stays_wide && recipe.adapters_in_fp32;
    #[allow(clippy::cast_possible_truncation)]
    let training = Training {
        element_bytes: element as u8,
        quantized: quantized_product(recipe),
        lora: recipe.method.lora().map(|lora| Lora {
            targets: LoraTargets::Named(wrapped_names(trained)),
            rank: lora.rank,
            has_dropout: lora.dropout,
            trained_modules: lora.modules_to_save.clone(),
            element_bytes: if is_wide { 4 } else { element as u8 },
        }),
        trainable_only: match &recipe.method {
            // The parameters of a stand-in have other names: it trains all of them, which never takes less.
            Method::Only(names) if is_own => Some(names.clone()),
            _ => None,
        },
    };
    let mut switches = shape::switches(model, family);
    switches.checkpointing = recipe.checkpointing;
    // With a frozen embedding nothing would reach the checkpoints; every front end switches this on.
    let by_default = recipe.checkpointing && training.lora.is_some();
    switches.input_gradients = recipe.input_gradients.unwrap_or(by_default);
    Ok(Setup { family, shape, switches, training, batch, head: recipe.loss })
}

fn quantized_product(recipe: &Recipe) -> Option<QuantizedProduct> {
    matches!(recipe.method, Method::QLora { .. }).then_some(recipe.quantized_product)
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

/// Own names of the modules that have an adapter.
fn wrapped_names(adapted: &Model) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for entry in adapted.parameters() {
        let mut parts = entry.name.rsplit('.').skip_while(|part| !part.starts_with("lora_"));
        if let (Some("lora_A" | "lora_embedding_A"), Some(wrapped)) = (parts.next(), parts.next())
            && !names.iter().any(|name| name == wrapped)
        {
            names.push(wrapped.to_owned());
        }
    }
    names
}

fn adapter_bytes(setup: &Setup) -> u8 {
    setup.training.lora.as_ref().map_or(setup.training.element_bytes, |lora| lora.element_bytes)
}

/// The parameters of a model as the optimizer sees them.
fn parameters(trained: &Model, recipe: &Recipe, element: u8, adapters: u8) -> Vec<Parameter> {
    let is_quantized = matches!(recipe.method, Method::QLora { .. });
    trained
        .parameters()
        .map(|entry| {
            let elements = entry.parameter.elements().unwrap_or(0);
            let is_adapter = entry.name.contains("lora_");
            let own = Parameter {
                elements: Elements(elements),
                element: (is_adapter && adapters != element).then_some(ElementSize::Four),
                trainable: entry.parameter.trainable,
                group: group(&entry.name, recipe),
            };
            if is_quantized && trained.is_quantized(&entry) && !entry.parameter.trainable {
                packed(own)
            } else {
                own
            }
        })
        .collect()
}

/// Two weights to a byte.
fn packed(parameter: Parameter) -> Parameter {
    Parameter {
        elements: Elements(parameter.elements.0.div_ceil(2)),
        element: Some(ElementSize::One),
        ..parameter
    }
}

/// The optimizer's parameter group of a parameter.
fn group(name: &str, recipe: &Recipe) -> usize {
    usize::from(recipe.norms_apart && name.contains("norm"))
}

fn program_parameters(model: &ProgramModel, element: u8, recipe: &Recipe) -> Vec<Parameter> {
    let as_seen = |parameter: &crate::model::Parameter| Parameter {
        elements: Elements(parameter.elements),
        element: (parameter.element_bytes != element).then_some(ElementSize::Four),
        trainable: parameter.is_trainable,
        group: if recipe.norms_apart {
            group(&model.parameter_name(parameter.id), recipe)
        } else {
            0
        },
    };
    let mut parameters: Vec<Parameter> =
        model.parameters.iter().map(|info| as_seen(&info.parameter)).collect();
    for quantized in &model.quantized {
        let parameter = &mut parameters[quantized.index()];
        *parameter = packed(*parameter);
    }
    parameters
}

/// Buffers of the model: rotary frequencies, and with a quantized base the scales of its weights.
fn buffers(setup: &Setup, trained: &Model, method: &Method) -> Bytes {
    // The frequencies and the copy kept beside them, in 32 bits.
    let frequencies = setup.shape.head_width / 2 * 4 * 2;
    let scales = match method {
        Method::QLora { scales, .. } => scale_bytes(trained, *scales),
        _ => 0,
    };
    Bytes(frequencies + scales)
}

fn scale_bytes(model: &Model, scales: ScaleStorage) -> u64 {
    let quantized = model.parameters().filter(|entry| model.is_quantized(entry));
    quantized
        .map(|entry| Elements(entry.parameter.elements().unwrap_or(0)))
        .map(|elements| Nf4Size::of(elements, scales))
        .map(|size| size.scales.0 + size.tables.0)
        .sum()
}

/// Token ids, labels and the attention mask, 64-bit numbers each.
fn batch_bytes(setup: &Setup) -> Bytes {
    let Batch { sequences, length, target_length } = setup.batch;
    let labels = if setup.family == Family::T5 { target_length } else { length };
    Bytes(sequences * (2 * length + labels) * 8)
}
