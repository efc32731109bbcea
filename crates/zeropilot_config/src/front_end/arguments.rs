//! What a training script tells the front ends besides the config.
//!
//! In [`TrainerArguments`] and [`AccelerateArguments`] a `None` means *not known to us*: a person who
//! has a config checked may tell only some of them. In [`PluginArguments`] it means *not given*,
//! because accelerate then has a default of its own and a config file next to such a setting is
//! rare (the launcher refuses most combinations).

use num_bigint::BigInt;

use crate::syntax::Value;

/// A number that Python keeps as the kind it was given in.
///
/// What a person types for an argument fits these; what a config holds needs the unbounded
/// [`crate::python::Number`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// An `int`.
    Int(i64),
    /// A `float`.
    Float(f64),
}

impl Number {
    pub(super) fn to_value(self) -> Value {
        match self {
            Self::Int(number) => Value::Int(BigInt::from(number)),
            Self::Float(number) => Value::Float(number),
        }
    }
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Number {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

/// The `mixed_precision` of an `Accelerator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MixedPrecision {
    /// `"no"`.
    No,
    /// `"fp16"`.
    Fp16,
    /// `"bf16"`.
    Bf16,
    /// `"fp8"`, which trains on top of bf16.
    Fp8,
}

impl MixedPrecision {
    /// As written in Python.
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
            Self::Fp8 => "fp8",
        }
    }

    pub(super) fn is_bf16_based(self) -> bool {
        matches!(self, Self::Bf16 | Self::Fp8)
    }
}

/// Everything the front ends are told. The default knows nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments {
    /// For the HF Trainer.
    pub trainer: TrainerArguments,
    /// For accelerate alone.
    pub accelerate: AccelerateArguments,
    /// For accelerate's plugin, which both go through.
    pub plugin: PluginArguments,
}

impl Arguments {
    /// What holds if the script sets nothing.
    pub fn library_defaults() -> Self {
        Self {
            trainer: TrainerArguments::library_defaults(),
            accelerate: AccelerateArguments::library_defaults(),
            plugin: PluginArguments::default(),
        }
    }
}

/// The fields of `transformers.TrainingArguments` that meet the config, under their Python names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TrainerArguments {
    /// Fills and must match `train_micro_batch_size_per_gpu`.
    pub per_device_train_batch_size: Option<i64>,
    /// Fills and must match `gradient_accumulation_steps`.
    pub gradient_accumulation_steps: Option<i64>,
    /// Fills and must match `gradient_clipping`.
    pub max_grad_norm: Option<Number>,
    /// Fills and must match the optimizer's `lr` and the scheduler's `warmup_max_lr`.
    pub learning_rate: Option<Number>,
    /// First of the optimizer's `betas`.
    pub adam_beta1: Option<Number>,
    /// Second of the optimizer's `betas`.
    pub adam_beta2: Option<Number>,
    /// Fills and must match the optimizer's `eps`.
    pub adam_epsilon: Option<Number>,
    /// Fills and must match the optimizer's `weight_decay`.
    pub weight_decay: Option<Number>,
    /// Steps if 1 or more, a share of the training steps below 1.
    pub warmup_steps: Option<Number>,
    /// `max_steps` where it is set, otherwise what the Trainer works out from epochs and data.
    pub num_training_steps: Option<i64>,
    /// Trains in fp16.
    pub fp16: Option<bool>,
    /// Trains in bf16.
    pub bf16: Option<bool>,
    /// Counts as fp16 when `fp16.enabled` is filled or compared.
    pub fp16_full_eval: Option<bool>,
    /// Counts as bf16 when `bf16.enabled` is filled or compared.
    pub bf16_full_eval: Option<bool>,
    /// Switches `checkpoint.use_node_local_storage` on. Unknown counts as off.
    pub save_on_each_node: Option<bool>,
    /// Lets the Trainer process the config a second time, without comparing the batch sizes.
    /// Unknown counts as off.
    pub auto_find_batch_size: Option<bool>,
    /// `ACCELERATE_MIXED_PRECISION`, which holds when neither `fp16` nor `bf16` is set. Unknown
    /// counts as `"no"`.
    pub environment_mixed_precision: Option<MixedPrecision>,
}

impl TrainerArguments {
    /// The class's defaults. The number of training steps has none, it depends on the data.
    pub fn library_defaults() -> Self {
        Self {
            per_device_train_batch_size: Some(8),
            gradient_accumulation_steps: Some(1),
            max_grad_norm: Some(Number::Float(1.0)),
            learning_rate: Some(Number::Float(5e-5)),
            adam_beta1: Some(Number::Float(0.9)),
            adam_beta2: Some(Number::Float(0.999)),
            adam_epsilon: Some(Number::Float(1e-8)),
            weight_decay: Some(Number::Float(0.0)),
            warmup_steps: Some(Number::Int(0)),
            num_training_steps: None,
            fp16: Some(false),
            bf16: Some(false),
            fp16_full_eval: Some(false),
            bf16_full_eval: Some(false),
            save_on_each_node: Some(false),
            auto_find_batch_size: Some(false),
            environment_mixed_precision: Some(MixedPrecision::No),
        }
    }

    /// What the Trainer gives to its `Accelerator`.
    pub(super) fn mixed_precision(&self) -> Option<MixedPrecision> {
        match (self.fp16, self.bf16) {
            (Some(true), _) => Some(MixedPrecision::Fp16),
            (Some(false), Some(true)) => Some(MixedPrecision::Bf16),
            (Some(false), Some(false)) => {
                Some(self.environment_mixed_precision.unwrap_or(MixedPrecision::No))
            }
            _ => None,
        }
    }
}

/// What an accelerate script gives to `Accelerator` and to `prepare`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AccelerateArguments {
    /// `Accelerator(mixed_precision=...)`.
    pub mixed_precision: Option<MixedPrecision>,
    /// `Accelerator(gradient_accumulation_steps=...)`.
    pub gradient_accumulation_steps: Option<i64>,
    /// The `batch_size` of every loader in the same call of `prepare` as the model, `None` for a
    /// loader without one. An empty list means that no loader is given.
    pub dataloader_batch_sizes: Option<Vec<Option<u64>>>,
    /// `DataLoaderConfiguration(split_batches=...)`.
    pub split_batches: Option<bool>,
    /// The optimizer given to `prepare`. Unknown is taken as the one that fits the config.
    pub optimizer: Option<OptimizerInCode>,
    /// The scheduler given to `prepare`. Unknown is taken as one that fits the config.
    pub scheduler: Option<SchedulerInCode>,
}

impl AccelerateArguments {
    /// The `Accelerator`'s defaults. What is given to `prepare` has none.
    pub fn library_defaults() -> Self {
        Self {
            mixed_precision: Some(MixedPrecision::No),
            gradient_accumulation_steps: Some(1),
            split_batches: Some(false),
            ..Self::default()
        }
    }
}

/// The optimizer a script gives to `prepare`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OptimizerInCode {
    /// None.
    Absent,
    /// `accelerate.utils.DummyOptim`: the engine builds the one in the config.
    Dummy {
        /// `lr`, 0.001 if the script does not say.
        lr: Option<Number>,
        /// `weight_decay`, 0 if the script does not say.
        weight_decay: Option<Number>,
    },
    /// A `torch.optim.Optimizer`.
    Torch {
        /// Its default `lr`.
        lr: Option<Number>,
    },
}

/// The scheduler a script gives to `prepare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerInCode {
    /// None.
    Absent,
    /// `accelerate.utils.DummyScheduler`: the engine builds the one in the config.
    Dummy {
        /// Outer `None` for not known, inner `None` for not given.
        total_num_steps: Option<Option<i64>>,
        /// `warmup_num_steps`, 0 if the script does not say.
        warmup_num_steps: Option<i64>,
        /// Whether it has an `lr_scheduler_callable`.
        callable: bool,
    },
    /// A scheduler of PyTorch's.
    Torch,
}

/// The fields of accelerate's `DeepSpeedPlugin`, or the environment variables behind them.
///
/// The Trainer builds its plugin without arguments, so there only the variables count.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PluginArguments {
    /// Fills `gradient_accumulation_steps`.
    pub gradient_accumulation_steps: Option<i64>,
    /// Fills `gradient_clipping`.
    pub gradient_clipping: Option<Number>,
    /// Fills `zero_optimization.stage`; 2 if not given.
    pub zero_stage: Option<i64>,
    /// Fills `zero_optimization.offload_optimizer.device`; `"none"` if not given.
    pub offload_optimizer_device: Option<String>,
    /// Fills `zero_optimization.offload_param.device`; `"none"` if not given.
    pub offload_param_device: Option<String>,
    /// Fills `zero_optimization.offload_optimizer.nvme_path`; the text `"none"` if not given.
    pub offload_optimizer_nvme_path: Option<String>,
    /// Fills `zero_optimization.offload_param.nvme_path`; the text `"none"` if not given.
    pub offload_param_nvme_path: Option<String>,
    /// Fills `zero_optimization.stage3_gather_16bit_weights_on_model_save`; false if not given.
    pub zero3_save_16bit_model: Option<bool>,
    /// Takes the smallest batch of several loaders, otherwise the largest; true if not given.
    pub is_train_batch_min: Option<bool>,
    /// Whether PyTorch is a ROCm build, where bf16 gets a wider communication type.
    pub rocm: Option<bool>,
    /// The DeepSpeed fields the accelerate launcher found in its own config file.
    pub accelerate_config_fields: Vec<String>,
}
