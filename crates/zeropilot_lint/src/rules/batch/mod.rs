//! B: batch arithmetic.
//!
//! `train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × ranks`.

pub(crate) mod accumulation_missing;
pub(crate) mod elastic_training;
pub(crate) mod fitting_ranks;
pub(crate) mod micro_batch_zero;
pub(crate) mod no_batch_size;
pub(crate) mod no_dataloader;
pub(crate) mod not_computable;
pub(crate) mod not_positive;
pub(crate) mod product_mismatch;
pub(crate) mod quoted_number;
pub(crate) mod uneven_split;

use num_traits::ToPrimitive;
use zeropilot_config::problem::{BatchNumbers, KeyPath};
use zeropilot_config::python::PyValue;

use crate::argument::Argument;
use crate::diagnostic::Fix;
use crate::edit::Edit;
use crate::subject::Subject;
use crate::world::WorldSource;
use zeropilot_text::Text;

pub(crate) const TRAIN: &str = "train_batch_size";
pub(crate) const MICRO: &str = "train_micro_batch_size_per_gpu";
pub(crate) const ACCUMULATION: &str = "gradient_accumulation_steps";

/// Whether the path is one of the three numbers.
pub(crate) fn is_batch_key(path: &KeyPath) -> bool {
    path.0.len() == 1 && [TRAIN, MICRO, ACCUMULATION].contains(&path.key())
}

/// The written numbers, as far as they are whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole {
    pub(crate) train: Option<i128>,
    pub(crate) micro: Option<i128>,
    pub(crate) accumulation: Option<i128>,
    pub(crate) world: i128,
}

impl Whole {
    /// `None` if a number that is there is not whole, or absurdly large.
    pub(crate) fn of(numbers: &BatchNumbers) -> Option<Self> {
        let optional = |value: &Option<PyValue>| match value {
            None => Some(None),
            Some(value) => whole(value).map(Some),
        };
        Some(Self {
            train: optional(&numbers.train)?,
            micro: optional(&numbers.micro)?,
            accumulation: optional(&numbers.accumulation)?,
            world: whole(&numbers.world)?,
        })
    }
}

fn whole(value: &PyValue) -> Option<i128> {
    const LARGEST: i128 = 1 << 40;
    let number = match value {
        PyValue::Int(value) => value.to_i128()?,
        PyValue::Float(value) if value.fract() == 0.0 => value.to_i128()?,
        _ => return None,
    };
    (-LARGEST..=LARGEST).contains(&number).then_some(number)
}

/// "4 ranks", and that the number is an assumption if it is one.
pub(crate) fn ranks(world: i128, subject: &Subject<'_>) -> Argument {
    let number = ("world", Argument::from(world));
    let phrase = match (subject.world.source, world) {
        (WorldSource::Assumed, _) => Text::new(
            "{world} rank (assumed, because no number of ranks was given)",
            "{world} 个 rank（未指定总卡数，按 1 计）",
        ),
        (_, 1) => Text::new("{world} rank", "{world} 个 rank"),
        _ => Text::new("{world} ranks", "{world} 个 rank"),
    };
    Argument::Nested(phrase, vec![number])
}

/// Writes another number into `train_batch_size`: a guess, since it changes the training.
pub(crate) fn set_train(subject: &Subject<'_>, value: i128) -> Option<Fix> {
    let node = subject.root.get(TRAIN)?;
    let title = Text::new(
        "set `train_batch_size` to {suggested}",
        "把 `train_batch_size` 改为 {suggested}",
    );
    Some(Fix::guess(title, vec![Edit::new(node.span, value.to_string())]))
}
