//! What beside a config decides how it is judged: the engine, the ranks, and what the training script says.

use std::num::NonZeroUsize;

use serde::{Deserialize, Deserializer};
use zeropilot_config::front_end::{
    AccelerateArguments, Arguments, FrontEnd, MixedPrecision, ModelFacts, Number, PluginArguments,
    TrainerArguments,
};
use zeropilot_config::packages::Packages;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{RULES, Script, Selection, Settings, nearest_code};

use crate::name::Precision;
#[cfg(feature = "clap")]
use crate::parsers;
use crate::size;

/// What the training script is told, as far as it is known. What is not said stays unknown.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(
    feature = "clap",
    derive(clap::Args),
    command(
        next_help_heading = "Training arguments, which fill \"auto\" and must agree with the config"
    )
)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptArguments {
    /// Set the micro-batch size per device
    #[cfg_attr(
        feature = "clap",
        arg(long, value_name = "N", visible_alias = "micro-batch", alias = "micro-batch-size")
    )]
    pub per_device_train_batch_size: Option<i64>,
    /// Set the gradient accumulation steps: micro-batches per optimizer step
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", visible_alias = "grad-accum"))]
    pub gradient_accumulation_steps: Option<i64>,
    /// Set the learning rate
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub learning_rate: Option<Number>,
    /// Set the weight decay
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub weight_decay: Option<Number>,
    /// Set the first beta of Adam
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub adam_beta1: Option<Number>,
    /// Set the second beta of Adam
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub adam_beta2: Option<Number>,
    /// Set the epsilon of Adam
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub adam_epsilon: Option<Number>,
    /// Clip gradients at this norm
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub max_grad_norm: Option<Number>,
    /// Set the warmup: a number of steps if 1 or more, a fraction of all steps if below 1
    #[serde(deserialize_with = "number")]
    #[cfg_attr(feature = "clap", arg(long, value_name = "X", value_parser = parsers::number))]
    pub warmup_steps: Option<Number>,
    /// Set the total number of training steps
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub max_steps: Option<i64>,
    /// Train in bf16
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    pub bf16: Option<bool>,
    /// Train in fp16
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    pub fp16: Option<bool>,
    /// Set accelerate's mixed precision
    #[cfg_attr(feature = "clap", arg(long, value_name = "PRECISION"))]
    pub mixed_precision: Option<Precision>,
    /// Let the Trainer search for a batch size that fits
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    pub auto_find_batch_size: Option<bool>,
    /// Set the optimizer of the HF Trainer, such as adamw_torch
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub optim: Option<String>,
    /// Set the scheduler of the HF Trainer, such as cosine
    #[cfg_attr(feature = "clap", arg(long, value_name = "NAME"))]
    pub lr_scheduler_type: Option<String>,
    /// Let the Trainer save the model without the optimizer states
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    pub save_only_model: Option<bool>,
    /// Let the Trainer load the best model at the end
    #[cfg_attr(feature = "clap", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    pub load_best_model_at_end: Option<bool>,
    /// Set the hidden size of the model, from its config.json
    #[cfg_attr(feature = "clap", arg(long, value_name = "N"))]
    pub hidden_size: Option<u64>,
}

/// How a config is judged.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Judging {
    /// How many ranks the run has.
    pub world_size: Option<NonZeroUsize>,
    /// Who reads the file; otherwise guessed.
    #[serde(deserialize_with = "size::word")]
    pub front_end: Option<FrontEnd>,
    /// Tell only these rules.
    pub select: Vec<String>,
    /// Do not tell these rules.
    pub ignore: Vec<String>,
    /// What the script is told.
    pub script: ScriptArguments,
}

/// Why nothing can be judged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JudgingProblem {
    /// A code that is no rule's.
    #[error("`{code}`: {}", UnknownCode(*nearest))]
    UnknownRule {
        /// What was given.
        code: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// Both 16-bit formats at once.
    #[error("`bf16` and `fp16` cannot both be on")]
    TwoPrecisions,
}

/// A code that is no rule's, with the one that may have been meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", match .0 {
    Some(nearest) => format!("there is no such rule; did you mean {nearest}?"),
    None => "there is no such rule; `zeropilot rules` lists all rules".to_owned(),
})]
pub struct UnknownCode(pub Option<&'static str>);

impl Judging {
    /// The settings of a check, for an engine.
    ///
    /// # Errors
    ///
    /// If a code is no rule's.
    pub fn settings(&self, version: EngineVersion) -> Result<Settings, JudgingProblem> {
        if (self.script.bf16, self.script.fp16) == (Some(true), Some(true)) {
            return Err(JudgingProblem::TwoPrecisions);
        }
        let selection = Selection { select: codes(&self.select)?, ignore: codes(&self.ignore)? };
        Ok(Settings {
            version,
            world_size: self.world_size.map(usize::from),
            front_end: self.front_end.or_else(|| self.script.reader()),
            arguments: self.script.arguments(),
            model: self.script.hidden_size.map(ModelFacts::with_hidden_size),
            script: self.script.script(),
            packages: Packages::default(),
            selection,
        })
    }
}

fn codes(codes: &[String]) -> Result<Vec<String>, JudgingProblem> {
    let problem = |code: &String, UnknownCode(nearest)| JudgingProblem::UnknownRule {
        code: code.clone(),
        nearest,
    };
    codes.iter().map(|code| rule_code(code).map_err(|unknown| problem(code, unknown))).collect()
}

/// A code, or the beginning of one, as rules have it.
///
/// # Errors
///
/// If no rule has such a code.
pub fn rule_code(text: &str) -> Result<String, UnknownCode> {
    let code = text.trim().to_uppercase();
    if !code.is_empty() && RULES.iter().any(|rule| rule.code.starts_with(&code)) {
        return Ok(code);
    }
    Err(UnknownCode(nearest_code(text)))
}

impl ScriptArguments {
    /// Who takes such arguments, and so reads the config.
    fn reader(&self) -> Option<FrontEnd> {
        // What the model is follows from no front end.
        let of_model = Self { hidden_size: self.hidden_size, ..Self::default() };
        match self.mixed_precision {
            Some(_) => Some(FrontEnd::Accelerate),
            None => (*self != of_model).then_some(FrontEnd::HfTrainer),
        }
    }

    /// What the front ends are told.
    fn arguments(&self) -> Arguments {
        // One 16-bit type excludes the other, and whoever names one has said it all.
        let says_precision = self.fp16.is_some() || self.bf16.is_some();
        let otherwise =
            |own: Option<bool>, other: Option<bool>| own.or(other.map(|on| !on).filter(|on| !on));
        let requested = self.mixed_precision.map(mixed_precision);
        let trainer = TrainerArguments {
            per_device_train_batch_size: self.per_device_train_batch_size,
            gradient_accumulation_steps: self.gradient_accumulation_steps,
            max_grad_norm: self.max_grad_norm,
            learning_rate: self.learning_rate,
            adam_beta1: self.adam_beta1,
            adam_beta2: self.adam_beta2,
            adam_epsilon: self.adam_epsilon,
            weight_decay: self.weight_decay,
            warmup_steps: self.warmup_steps,
            num_training_steps: self.max_steps,
            fp16: otherwise(self.fp16, self.bf16),
            bf16: otherwise(self.bf16, self.fp16),
            fp16_full_eval: says_precision.then_some(false),
            bf16_full_eval: says_precision.then_some(false),
            auto_find_batch_size: self.auto_find_batch_size,
            environment_mixed_precision: requested,
            ..TrainerArguments::default()
        };
        let from_flags = match (self.bf16, self.fp16) {
            (Some(true), _) => Some(MixedPrecision::Bf16),
            (_, Some(true)) => Some(MixedPrecision::Fp16),
            _ => None,
        };
        let loader = self.per_device_train_batch_size.and_then(|size| u64::try_from(size).ok());
        let accelerate = AccelerateArguments {
            mixed_precision: requested.or(from_flags),
            gradient_accumulation_steps: self.gradient_accumulation_steps,
            dataloader_batch_sizes: loader.map(|size| vec![Some(size)]),
            // A batch that is given per device is not split any further.
            split_batches: loader.map(|_| false),
            ..AccelerateArguments::default()
        };
        Arguments { trainer, accelerate, plugin: PluginArguments::default() }
    }

    /// What the script decides that no key is filled from.
    fn script(&self) -> Script {
        Script {
            optim: self.optim.clone(),
            lr_scheduler_type: self.lr_scheduler_type.clone(),
            save_only_model: self.save_only_model,
            load_best_model_at_end: self.load_best_model_at_end,
            ..Script::default()
        }
    }
}

fn mixed_precision(name: Precision) -> MixedPrecision {
    match name {
        Precision::No => MixedPrecision::No,
        Precision::Fp16 => MixedPrecision::Fp16,
        Precision::Bf16 => MixedPrecision::Bf16,
        Precision::Fp8 => MixedPrecision::Fp8,
    }
}

/// A number as Python keeps it: whole or not.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Number>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Whole(i64),
        Real(f64),
    }
    Ok(Option::<Written>::deserialize(from)?.map(|written| match written {
        Written::Whole(number) => Number::Int(number),
        Written::Real(number) => Number::Float(number),
    }))
}
