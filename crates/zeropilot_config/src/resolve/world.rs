//! How many data-parallel ranks the batch is divided among.

use super::Source;
use super::loader::Loader;
use crate::judge::Place;
use crate::problem::{Expected, ProblemKind};
use crate::python::{Number, PyValue};

/// The world size that the batch arithmetic uses; `None` if the engine raises while computing it.
///
/// With `sequence_parallel_size` it becomes a float, and so do the batch sizes computed from it.
pub(super) fn world_size(loader: &mut Loader<'_, '_>) -> Option<Number> {
    let ranks = Number::from_usize(loader.circumstances.world_size);
    let looked_up =
        loader.circumstances.source == Source::Dictionary || loader.judge.schema.reads_file_first;
    let Some(node) = loader.known("sequence_parallel_size").filter(|_| looked_up) else {
        return Some(ranks);
    };
    let divided = PyValue::from(node).number().and_then(|size| ranks.true_divide(&size).ok());
    if let Some(size) = divided {
        return Some(Number::Float(size));
    }
    // Up to 0.18 every error here was swallowed and the run went on as if it had one rank.
    let accepts =
        loader.judge.schema.raw_key("sequence_parallel_size").and_then(|key| key.accepts.as_ref());
    if accepts.is_none_or(|kinds| kinds.iter().any(|kind| kind == "str")) {
        return Some(Number::from_usize(1));
    }
    let place = Place::top("sequence_parallel_size");
    if PyValue::from(node).number().is_some() {
        loader.judge.report(ProblemKind::BatchArithmetic, &place, node.span);
    } else {
        loader.judge.wrong(Expected::Int, node, &place);
    }
    None
}
