//! Training arguments as a command line or a YAML file gives them.

use zeropilot_config::front_end::{
    Arguments, FrontEnd, MixedPrecision, Number, PluginArguments, TrainerArguments,
};

use crate::place::{Named, Place, Said};

/// What a launch says to the training script, as far as it is known.
#[derive(Debug, Default)]
pub struct Given {
    /// The config, as it is named.
    pub config: Option<Named>,
    /// The config as a dictionary that is written out in the training script.
    pub dictionary: Option<Place>,
    /// Who reads the config, where the launch shows it.
    pub front_end: Option<FrontEnd>,
    /// Whether only the name of an option shows that, and no file.
    pub is_reader_an_option: bool,
    /// Whether the training script opens the config itself: what it hands on from there does not show who reads it.
    pub is_reader_hidden: bool,
    /// Arguments whose values are known, the later ones counting.
    pub values: Vec<Said>,
    /// Names whose values only the run knows.
    pub unknown: Vec<String>,
    /// Whether everything else has the defaults of `TrainingArguments`.
    pub has_defaults: bool,
}

/// The optimizer that a script hands to `deepspeed.initialize`, by its class.
pub const CLIENT_OPTIMIZER: &str = "optimizer";

/// The section of accelerate's YAML that speaks of DeepSpeed.
pub const ACCELERATE_SECTION: &str = "deepspeed_config.";

impl Given {
    /// An argument that is known.
    pub fn said(&self, name: &str) -> Option<&Said> {
        self.values.iter().rev().find(|said| said.name == name)
    }

    /// The value of an argument that is known.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.said(name).map(|said| said.value.as_str())
    }

    /// Adds an argument.
    pub fn say(&mut self, name: &str, value: impl Into<String>, place: Place) {
        self.values.push(Said { name: name.to_owned(), value: value.into(), place });
    }

    fn whole(&self, name: &str) -> Option<i64> {
        self.value(name)?.parse().ok()
    }

    fn number(&self, name: &str) -> Option<Number> {
        let text = self.value(name)?;
        match text.parse::<i64>() {
            Ok(number) => Some(Number::Int(number)),
            Err(_) => text.parse().ok().map(Number::Float),
        }
    }

    /// A switch: its name alone, or followed by a boolean.
    pub fn switch(&self, name: &str) -> Option<bool> {
        match self.value(name)?.to_lowercase().as_str() {
            "" | "true" | "yes" | "1" => Some(true),
            "false" | "no" | "0" => Some(false),
            _ => None,
        }
    }

    /// Adds what is known here to what the user did not say.
    pub fn add_to(&self, arguments: &mut Arguments) {
        let trainer = &mut arguments.trainer;
        let micro = "per_device_train_batch_size";
        let steps = "gradient_accumulation_steps";
        trainer.per_device_train_batch_size =
            trainer.per_device_train_batch_size.or_else(|| self.whole(micro));
        trainer.gradient_accumulation_steps =
            trainer.gradient_accumulation_steps.or_else(|| self.whole(steps));
        for (place, name) in [
            (&mut trainer.max_grad_norm, "max_grad_norm"),
            (&mut trainer.learning_rate, "learning_rate"),
            (&mut trainer.adam_beta1, "adam_beta1"),
            (&mut trainer.adam_beta2, "adam_beta2"),
            (&mut trainer.adam_epsilon, "adam_epsilon"),
            (&mut trainer.weight_decay, "weight_decay"),
            (&mut trainer.warmup_steps, "warmup_steps"),
        ] {
            *place = place.or_else(|| self.number(name));
        }
        trainer.num_training_steps = trainer
            .num_training_steps
            .or_else(|| self.whole("max_steps").filter(|steps| *steps > 0));
        trainer.auto_find_batch_size =
            trainer.auto_find_batch_size.or_else(|| self.switch("auto_find_batch_size"));
        if self.has_defaults {
            self.add_defaults(trainer);
        }
        let (fp16, bf16) = (self.switch("fp16"), self.switch("bf16"));
        // Who switches one 16-bit type on has said it all; the other is off.
        let otherwise =
            |own: Option<bool>, other: Option<bool>| own.or((other == Some(true)).then_some(false));
        trainer.fp16 = trainer.fp16.or(otherwise(fp16, bf16));
        trainer.bf16 = trainer.bf16.or(otherwise(bf16, fp16));
        if fp16.is_some() || bf16.is_some() {
            trainer.fp16_full_eval = trainer.fp16_full_eval.or(Some(false));
            trainer.bf16_full_eval = trainer.bf16_full_eval.or(Some(false));
        }
        let accelerate = &mut arguments.accelerate;
        accelerate.gradient_accumulation_steps =
            accelerate.gradient_accumulation_steps.or_else(|| self.whole(steps));
        accelerate.mixed_precision = accelerate.mixed_precision.or_else(|| self.mixed_precision());
        self.add_fields_of_accelerate(&mut arguments.plugin);
    }

    /// What a script that makes its `TrainingArguments` itself leaves to the class.
    fn add_defaults(&self, trainer: &mut TrainerArguments) {
        let usual = TrainerArguments::library_defaults();
        let is_left =
            |name: &str| self.said(name).is_none() && !self.unknown.iter().any(|it| it == name);
        for (place, usual, name) in [
            (
                &mut trainer.per_device_train_batch_size,
                usual.per_device_train_batch_size,
                "per_device_train_batch_size",
            ),
            (
                &mut trainer.gradient_accumulation_steps,
                usual.gradient_accumulation_steps,
                "gradient_accumulation_steps",
            ),
        ] {
            *place = place.or(usual.filter(|_| is_left(name)));
        }
        for (place, usual, name) in [
            (&mut trainer.max_grad_norm, usual.max_grad_norm, "max_grad_norm"),
            (&mut trainer.learning_rate, usual.learning_rate, "learning_rate"),
            (&mut trainer.adam_beta1, usual.adam_beta1, "adam_beta1"),
            (&mut trainer.adam_beta2, usual.adam_beta2, "adam_beta2"),
            (&mut trainer.adam_epsilon, usual.adam_epsilon, "adam_epsilon"),
            (&mut trainer.weight_decay, usual.weight_decay, "weight_decay"),
        ] {
            *place = place.or(usual.filter(|_| is_left(name)));
        }
    }

    /// The keys that accelerate finds in its own YAML beside the name of a DeepSpeed config.
    fn add_fields_of_accelerate(&self, plugin: &mut PluginArguments) {
        if !plugin.accelerate_config_fields.is_empty() {
            return;
        }
        let names =
            self.values.iter().filter_map(|said| said.name.strip_prefix(ACCELERATE_SECTION));
        plugin.accelerate_config_fields = names.map(str::to_owned).collect();
    }

    fn mixed_precision(&self) -> Option<MixedPrecision> {
        match self.value("mixed_precision")? {
            "no" => Some(MixedPrecision::No),
            "fp16" => Some(MixedPrecision::Fp16),
            "bf16" => Some(MixedPrecision::Bf16),
            "fp8" => Some(MixedPrecision::Fp8),
            _ => None,
        }
    }
}
