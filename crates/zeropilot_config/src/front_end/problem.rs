//! What [`super::fill`] reports: refusals, values still to come, values written.
//!
//! Data only. How a problem reads on a screen is the business of whoever shows it.

use super::arguments::MixedPrecision;
use crate::syntax::{Span, Value};

/// A reason for which the front end would not reach the engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// What is wrong.
    pub kind: ProblemKind,
    /// The key, dotted from the root; empty for the root itself and for problems of the arguments.
    pub path: String,
    /// The offending value, or the nearest object where there is none.
    pub span: Span,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq)]
pub enum ProblemKind {
    /// The value differs from the argument it must match.
    Mismatch {
        /// What the config says.
        written: Value,
        /// What the argument says.
        expected: Value,
        /// The argument.
        argument: &'static str,
    },
    /// An `"auto"` that nobody fills.
    LeftoverAuto,
    /// Read as an object, but it is none. The Python type is `found`.
    NotAnObject {
        /// Python's name of its type.
        found: &'static str,
    },
    /// Used in a way its value does not allow; Python raises where it is used.
    Unusable {
        /// Python's name of its type.
        found: &'static str,
        /// What is done with it.
        operation: Operation,
    },
    /// There is no `zero_optimization`.
    NoZeroSection,
    /// The precision asked for in code and the other 16-bit section are both on.
    BothPrecisions {
        /// What the code asks for.
        requested: MixedPrecision,
    },
    /// Bucket keys are `"auto"`, but the model does not tell its hidden size where this front end
    /// looks for it.
    NoHiddenSize {
        /// The keys that need it.
        keys: Vec<&'static str>,
    },
    /// `auto_find_batch_size` with ZeRO stage 3.
    AutoFindBatchSizeWithStage3,
    /// Two arguments exclude each other.
    ConflictingArguments {
        /// The one.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// An argument has a value the front end cannot use.
    UnusableArgument {
        /// The argument.
        argument: &'static str,
    },
    /// The accelerate launcher's config sets what belongs into the DeepSpeed config.
    FieldsInAccelerateConfig {
        /// The fields.
        fields: Vec<String>,
    },
    /// An optimizer in the config and a PyTorch optimizer in the code.
    OptimizerInConfigAndCode,
    /// `DummyOptim` in the code, no optimizer in the config.
    DummyOptimizerWithoutSection,
    /// A scheduler in the config and a PyTorch scheduler in the code.
    SchedulerInConfigAndCode,
    /// `DummyScheduler` without a callable in the code, no scheduler in the config.
    DummySchedulerWithoutSection,
    /// `DummyOptim` together with a PyTorch scheduler.
    DummyOptimizerWithRealScheduler,
    /// The micro batch is `"auto"` and no loader is given to `prepare`.
    NoDataloader,
    /// A loader without a batch size where one is needed.
    DataloaderWithoutBatchSize,
    /// `split_batches` with a batch that does not divide among the processes.
    UnevenSplit {
        /// The loader's batch size.
        batch_size: u64,
        /// The number of processes.
        world_size: u64,
    },
}

/// What a front end does with a value that not every value allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is looked up in a set, which lists and objects cannot be.
    LookUpInASet,
    /// It is multiplied with other batch numbers.
    Multiply,
    /// It is compared with 1.
    CompareWithOne,
    /// The number of processes is divided by it.
    DivideBy,
}

/// A key that holds `"auto"` until the script runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The key, dotted from the root.
    pub path: String,
    /// The `"auto"`.
    pub span: Span,
    /// The argument or fact that will fill it.
    pub argument: &'static str,
}

/// How a value got into the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum How {
    /// It replaced an `"auto"`.
    Placeholder,
    /// The key was not there.
    Inserted,
    /// It replaced what was written.
    Overwritten,
}

/// A value the front end wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledKey {
    /// The key, dotted from the root.
    pub path: String,
    /// What it replaced, or an empty span at the start of the object it was inserted into.
    pub span: Span,
    /// What was written.
    pub value: Value,
    /// The argument or fact it came from.
    pub argument: &'static str,
    /// How it got there.
    pub how: How,
}
