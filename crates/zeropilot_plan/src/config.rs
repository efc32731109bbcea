//! A recipe as a config: keys in the order people write them, numbers where the reader takes them from the file,
//! `"auto"` where it fills them.

mod training;
mod zero;

use serde_json::{Map, Value};

use crate::precision::{LossScale, Precision};
use crate::recipe::Recipe;
use crate::target::Target;

/// What a front end replaces.
pub(crate) const AUTO: &str = "auto";

/// An object of the values that there are.
fn object<'k>(members: impl IntoIterator<Item = (&'k str, Option<Value>)>) -> Map<String, Value> {
    let given = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
    given.collect()
}

impl Recipe {
    /// The config, ready to be written as strict JSON.
    pub fn config(&self) -> Map<String, Value> {
        let mut config = self.batch();
        let clipping = match self.target.is_trainer() {
            true => Value::from(AUTO),
            false => Value::from(self.clipping.unwrap_or(Self::CLIPPING)),
        };
        config.insert("gradient_clipping".to_owned(), clipping);
        config.extend(self.precision_sections());
        config.insert("zero_optimization".to_owned(), Value::Object(zero::section(self)));
        config.extend(training::sections(self));
        config
    }

    fn batch(&self) -> Map<String, Value> {
        let auto = || Some(Value::from(AUTO));
        let micro = Some(Value::from(self.batch.micro.get()));
        let accumulation = Some(Value::from(self.batch.accumulation.get()));
        let (global, micro, accumulation) = match self.target {
            // Without the number of ranks the engine multiplies by however many there are.
            Target::DeepSpeed => (self.batch.global().map(Value::from), micro, accumulation),
            // The loader knows the micro batch; the accumulation is taken from the file before anything else.
            Target::Accelerate => (auto(), auto(), accumulation),
            _ => (auto(), auto(), auto()),
        };
        object([
            ("train_batch_size", global),
            ("train_micro_batch_size_per_gpu", micro),
            ("gradient_accumulation_steps", accumulation),
        ])
    }

    /// For the Trainer both sections are there in any case: without them stage 3 would build the model in fp32.
    fn precision_sections(&self) -> Map<String, Value> {
        let enabled = |value: Value| object([("enabled", Some(value))]);
        let is_trainer = self.target.is_trainer();
        let switch = |on: bool| if is_trainer { Value::from(AUTO) } else { Value::from(on) };
        let (bf16, fp16) = match self.precision {
            Precision::Bf16 => {
                (Some(enabled(switch(true))), is_trainer.then(|| enabled(switch(false))))
            }
            Precision::Fp16(scale) => {
                let mut fp16 = enabled(switch(true));
                fp16.extend(loss_scale(scale));
                (is_trainer.then(|| enabled(switch(false))), Some(fp16))
            }
            // Written, so that nobody takes it for an oversight.
            Precision::Fp32 => (Some(enabled(switch(false))), Some(enabled(switch(false)))),
        };
        object([("bf16", bf16.map(Value::Object)), ("fp16", fp16.map(Value::Object))])
    }
}

fn loss_scale(scale: LossScale) -> Map<String, Value> {
    match scale {
        LossScale::Static(scale) => object([("loss_scale", Some(Value::from(scale)))]),
        LossScale::Dynamic(search) => object([
            // Zero is the engine's word for searching.
            ("loss_scale", Some(Value::from(0))),
            ("initial_scale_power", search.initial_scale_power.map(Value::from)),
            ("loss_scale_window", search.window.map(Value::from)),
            ("hysteresis", search.hysteresis.map(Value::from)),
            ("min_loss_scale", search.minimum.map(Value::from)),
        ]),
    }
}
