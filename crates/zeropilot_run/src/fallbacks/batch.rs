//! The samples of a step: how many at a time and how often, in the config or in the arguments of the program.

use std::num::NonZeroU64;

use serde_json::{Map, Value, json};

pub(super) const MICRO_ARGUMENT: &str = "--per_device_train_batch_size";
pub(super) const ACCUMULATION_ARGUMENT: &str = "--gradient_accumulation_steps";
pub(super) const MICRO: &str = "train_micro_batch_size_per_gpu";
pub(super) const ACCUMULATION: &str = "gradient_accumulation_steps";
pub(super) const GLOBAL: &str = "train_batch_size";

/// What the training program is told about the batch, where the config leaves it to it.
#[derive(Debug, Clone, Copy, Default)]
pub struct BatchArguments {
    /// `--per_device_train_batch_size`.
    pub micro: Option<NonZeroU64>,
    /// `--gradient_accumulation_steps`.
    pub accumulation: Option<NonZeroU64>,
}

impl BatchArguments {
    /// From what options say.
    pub(crate) fn read(value: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| value(name)?.parse().ok();
        Self { micro: number(MICRO_ARGUMENT), accumulation: number(ACCUMULATION_ARGUMENT) }
    }

    /// As they are once these are set.
    pub(crate) fn with(self, told: &[(&'static str, String)]) -> Self {
        let set = Self::read(|name| {
            told.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone())
        });
        Self {
            micro: set.micro.or(self.micro),
            accumulation: set.accumulation.or(self.accumulation),
        }
    }
}

/// A config and the arguments that change with it.
pub(super) type Changed = (Map<String, Value>, Vec<(&'static str, String)>);

/// What a rank takes in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Samples at a time.
    pub micro: u64,
    /// How often.
    pub accumulation: u64,
}

impl Batch {
    /// The batch of a config with its arguments, if they tell.
    pub fn of(
        config: &Map<String, Value>,
        arguments: BatchArguments,
        world: Option<usize>,
    ) -> Option<Self> {
        let whole = |key: &str| config.get(key).and_then(Value::as_u64).filter(|value| *value > 0);
        let of =
            |key: &str, argument: Option<NonZeroU64>| whole(key).or(argument.map(NonZeroU64::get));
        let ranks = || u64::try_from(world?).ok();
        let global = whole(GLOBAL);
        let accumulation = of(ACCUMULATION, arguments.accumulation);
        match of(MICRO, arguments.micro) {
            Some(micro) => {
                let derived = || global?.checked_div(micro * ranks()?);
                let accumulation = accumulation.or_else(derived).unwrap_or(1);
                Some(Self { micro, accumulation })
            }
            None => {
                let accumulation = accumulation.unwrap_or(1);
                let micro = global?.checked_div(accumulation * ranks()?)?;
                Some(Self { micro, accumulation })
            }
        }
    }

    /// Samples of a step on all ranks.
    pub(crate) fn global(self, ranks: usize) -> Option<u64> {
        self.micro.checked_mul(self.accumulation)?.checked_mul(u64::try_from(ranks).ok()?)
    }

    /// Whether a step has as many samples with the other.
    pub(super) fn is_as_large_as(self, other: Self) -> bool {
        self.micro.checked_mul(self.accumulation) == other.micro.checked_mul(other.accumulation)
    }

    /// The config with this batch, and the arguments where the program has a word in it.
    pub(super) fn put(self, config: &Map<String, Value>, arguments: BatchArguments) -> Changed {
        let mut changed = config.clone();
        let mut told = Vec::new();
        for (key, argument, is_told, value) in [
            (MICRO, MICRO_ARGUMENT, arguments.micro.is_some(), self.micro),
            (
                ACCUMULATION,
                ACCUMULATION_ARGUMENT,
                arguments.accumulation.is_some(),
                self.accumulation,
            ),
        ] {
            let says_auto = config.get(key).is_some_and(|value| value == "auto");
            if !says_auto {
                changed.insert(key.to_owned(), json!(value));
            }
            if is_told || says_auto {
                told.push((argument, value.to_string()));
            }
        }
        (changed, told)
    }
}
