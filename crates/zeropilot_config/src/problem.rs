//! Why the engine would refuse a config: one value per cause, with its place and without words.

use std::fmt;

use crate::python::{Kind, PyValue};
use crate::syntax::Span;

/// A dotted path to a key, such as `zero_optimization.offload_param.device`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyPath(pub Vec<String>);

impl KeyPath {
    /// The last part.
    pub fn key(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// The path of the object that holds the key.
    pub fn parent(&self) -> KeyPath {
        Self(self.0[..self.0.len().saturating_sub(1)].to_vec())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("."))
    }
}

impl From<&str> for KeyPath {
    fn from(dotted: &str) -> Self {
        Self(dotted.split('.').map(str::to_owned).collect())
    }
}

/// One reason for which the engine ends the run while loading the config.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// The key it is about; empty for the file as a whole.
    pub path: KeyPath,
    /// The value, or the key where the key itself is wrong.
    pub span: Span,
}

/// What a key had to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Expected {
    /// `true` or `false`.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Text.
    Str,
    /// One of these.
    OneOf(Vec<String>),
    /// An object.
    Section,
    /// A list.
    List,
    /// A list of text.
    ListOfText,
    /// A list of whole numbers above zero.
    ListOfPositiveInts,
    /// Nothing a file can hold.
    Nothing,
    /// `null`: the engine supports no other value.
    Null,
    /// Something that is not empty or zero.
    NotEmpty,
}

/// A limit on a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// Greater than.
    Above(f64),
    /// Greater than or equal.
    AtLeast(f64),
    /// Less than.
    Below(f64),
    /// Less than or equal.
    AtMost(f64),
}

/// The three numbers of the batch equation, as far as they are given.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchNumbers {
    /// `train_batch_size`.
    pub train: Option<PyValue>,
    /// `train_micro_batch_size_per_gpu`.
    pub micro: Option<PyValue>,
    /// `gradient_accumulation_steps`.
    pub accumulation: Option<PyValue>,
    /// The number of data-parallel ranks.
    pub world: PyValue,
}

/// The causes.
#[derive(Debug, Clone, PartialEq)]
pub enum ProblemKind {
    /// The file holds something other than an object.
    RootNotAnObject(Kind),
    /// A key stands twice in one object.
    DuplicateKey {
        /// Where it stood first.
        first: Span,
    },
    /// A value of the wrong kind.
    WrongValue {
        /// What is needed.
        expected: Expected,
        /// What stands there.
        found: Kind,
    },
    /// A number outside its limits.
    OutOfBounds(Bound),
    /// A key that the section's model does not have.
    UnknownKey {
        /// The nearest key it does have.
        nearest: Option<String>,
    },
    /// The same field by its key and by its internal name.
    SpeltTwice {
        /// The spelling that is used.
        used: String,
    },
    /// A deprecated key together with its replacement.
    DeprecatedTogether {
        /// The replacement.
        new: String,
    },
    /// A key the engine no longer supports.
    Removed {
        /// What the engine says.
        message: String,
    },
    /// A key that must be given here.
    MissingKey {
        /// Which.
        key: String,
    },
    /// An `"auto"` where only a front end could put a number.
    AutoUnfilled,
    /// None of the batch keys that would determine the batch.
    BatchUndetermined,
    /// One of the three batch numbers is not above zero.
    BatchNotPositive(BatchNumbers),
    /// The three batch numbers do not multiply.
    BatchMismatch(BatchNumbers),
    /// The batch arithmetic cannot be carried out at all, for example a division by zero.
    BatchArithmetic,
    /// `fp16` and `bf16` are both on.
    BothPrecisions,
    /// Two settings that exclude each other, or one that needs another.
    Conflict(Conflict),
    /// Elastic training cannot use this number of ranks, or its numbers do not work out.
    Elasticity(ElasticityProblem),
}

/// Named rules between keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conflict {
    /// 16-bit master weights need ZeRO.
    MasterWeightsNeedZero,
    /// 16-bit master weights need ZeRO stage 2 in this version.
    MasterWeightsNeedStage2,
    /// bf16 optimizer states need bf16 master weights.
    OptimizerStatesNeedMasterWeights,
    /// Part of the optimizer on the CPU needs stage 3.
    PartialOffloadNeedsStage3,
    /// Without the gradient norm only stages 1 and 2 work.
    GradNormOffNeedsStage1Or2,
    /// Summed gradients do not work with stage 3.
    SumNeedsNoStage3,
    /// Summed gradients do not work with ZenFlow.
    SumNeedsNoZenFlow,
    /// Summed gradients do not work with DeepCompile.
    SumNeedsNoDeepCompile,
    /// GPU direct storage needs CUDA.
    GdsNeedsCuda,
    /// `wall_clock_breakdown` and `flops_profiler.enabled` must both be true or false.
    BreakdownNeedsBooleans,
    /// The end of a schedule lies before its start.
    ScheduleEndsBeforeStart,
    /// Enabled `shared_parameters` directly below `compression_training` make the engine itself fail.
    EigenvalueDisabled,
    /// Dynamic loss scaling cannot work with a window or floor of zero or less.
    DynamicLossScaleNeedsPositive,
}

/// Ways elastic training refuses.
#[derive(Debug, Clone, PartialEq)]
pub enum ElasticityProblem {
    /// Batch keys stand beside an enabled `elasticity` section.
    BatchKeysPresent,
    /// This number of ranks is not among the possible ones.
    WorldSizeNotPossible {
        /// The possible ones, as far as they could be computed.
        possible: Vec<u64>,
    },
    /// A number is out of its range.
    OutOfRange,
    /// The version is not supported.
    Version,
    /// No arithmetic solution exists.
    NoSolution,
}
