//! `train_batch_size = train_micro_batch_size_per_gpu × gradient_accumulation_steps × ranks`.

use super::loader::Loader;
use crate::judge::{Place, member};
use crate::problem::{BatchNumbers, Expected, ProblemKind};
use crate::python::{Number, PyValue, is_auto};
use crate::syntax::{Span, Value};

/// The global batch.
pub(crate) const TRAIN: &str = "train_batch_size";
/// What one rank takes at once.
pub(crate) const MICRO: &str = "train_micro_batch_size_per_gpu";
/// Micro batches per step.
pub(crate) const ACCUMULATION: &str = "gradient_accumulation_steps";

/// Fills in what is missing of the three numbers and checks that they multiply.
pub(super) fn load(loader: &mut Loader<'_, '_>, world: &Number) {
    let before = loader.judge.problems.len();
    let train = number(loader, TRAIN);
    let micro = number(loader, MICRO);
    let accumulation = number(loader, ACCUMULATION);
    if loader.judge.problems.len() > before {
        return;
    }
    let given = BatchNumbers {
        train: train.clone(),
        micro: micro.clone(),
        accumulation: accumulation.clone(),
        world: world.clone().into(),
    };
    let span = blame(loader);
    match complete(train, micro, accumulation, world) {
        Err(Incomplete::Undetermined) => {
            loader.judge.report_root(ProblemKind::BatchUndetermined, span)
        }
        Err(Incomplete::Arithmetic) => report(loader, ProblemKind::BatchArithmetic, span),
        Ok([train, micro, accumulation]) => {
            match judge(&train, &micro, &accumulation, world) {
                Some(true) => report(loader, ProblemKind::BatchNotPositive(given), span),
                Some(false) => report(loader, ProblemKind::BatchMismatch(given), span),
                None => {}
            }
            loader.set("train_batch_size", train);
            loader.set("train_micro_batch_size_per_gpu", micro);
            loader.set("gradient_accumulation_steps", accumulation);
        }
    }
}

fn report(loader: &mut Loader<'_, '_>, kind: ProblemKind, span: Span) {
    let key = [TRAIN, MICRO, ACCUMULATION].into_iter().find(|key| loader.get(key).is_some());
    loader.judge.report(kind, &Place::top(key.unwrap_or(TRAIN)), span);
}

/// The value to point at: the global batch if it is written, else whichever key is.
fn blame(loader: &Loader<'_, '_>) -> Span {
    [TRAIN, MICRO, ACCUMULATION]
        .into_iter()
        .find_map(|key| member(loader.members, key))
        .map_or(loader.root_span, |member| member.value.span)
}

fn number(loader: &mut Loader<'_, '_>, key: &'static str) -> Option<PyValue> {
    if let Some((_, value)) = loader.special.iter().rev().find(|(name, _)| *name == key) {
        return Some(value.clone());
    }
    let node = loader.get(key)?;
    match &node.value {
        Value::Null => None,
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => Some(node.into()),
        value if is_auto(value) => {
            loader.judge.report(ProblemKind::AutoUnfilled, &Place::top(key), node.span);
            None
        }
        _ => {
            loader.judge.wrong(Expected::Int, node, &Place::top(key));
            None
        }
    }
}

enum Incomplete {
    Undetermined,
    Arithmetic,
}

/// The three numbers, the missing ones computed as the engine computes them.
fn complete(
    train: Option<PyValue>,
    micro: Option<PyValue>,
    accumulation: Option<PyValue>,
    world: &Number,
) -> Result<[PyValue; 3], Incomplete> {
    let as_number = |value: &PyValue| value.number().ok_or(Incomplete::Arithmetic);
    let divide = |a: &Number, b: &Number| a.floor_divide(b).map_err(|_| Incomplete::Arithmetic);
    let multiply = |a: &Number, b: &Number| a.multiply(b).map_err(|_| Incomplete::Arithmetic);
    Ok(match (train, micro, accumulation) {
        (Some(train), Some(micro), Some(accumulation)) => [train, micro, accumulation],
        (Some(train), Some(micro), None) => {
            let steps = divide(&divide(&as_number(&train)?, &as_number(&micro)?)?, world)?;
            [train, micro, steps.into()]
        }
        (Some(train), None, Some(accumulation)) => {
            let micro = divide(&divide(&as_number(&train)?, world)?, &as_number(&accumulation)?)?;
            [train, micro.into(), accumulation]
        }
        (None, Some(micro), Some(accumulation)) => {
            let train =
                multiply(&multiply(&as_number(&micro)?, &as_number(&accumulation)?)?, world)?;
            [train.into(), micro, accumulation]
        }
        (Some(train), None, None) => {
            let micro = divide(&as_number(&train)?, world)?;
            [train, micro.into(), 1.into()]
        }
        (None, Some(micro), None) => {
            let train = multiply(&as_number(&micro)?, world)?;
            [train.into(), micro, 1.into()]
        }
        (None, None, _) => return Err(Incomplete::Undetermined),
    })
}

/// `Some(true)` if one is not positive, `Some(false)` if they do not multiply, `None` if all is well.
fn judge(train: &PyValue, micro: &PyValue, accumulation: &PyValue, world: &Number) -> Option<bool> {
    let numbers = [train, micro, accumulation].map(PyValue::number);
    let [Some(train), Some(micro), Some(accumulation)] = numbers else { return Some(true) };
    if !(train.is_positive() && micro.is_positive() && accumulation.is_positive()) {
        return Some(true);
    }
    let product = micro.multiply(&accumulation).and_then(|product| product.multiply(world));
    match product {
        Ok(product) if train.equals(&product) => None,
        _ => Some(false),
    }
}
