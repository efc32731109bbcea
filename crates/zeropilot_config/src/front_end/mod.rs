//! What stands between the file a person wrote and the dictionary the engine reads.
//!
//! `"auto"` is no feature of DeepSpeed. The HF Trainer and accelerate replace it from their own
//! arguments, compare other keys with them, insert sections, and refuse configs they cannot use.
//! [`fill`] does to a tree what they would do, and says which values came from where, which will
//! only be known when the script runs, and what would be refused.
//!
//! It mirrors transformers 5.22 and accelerate 1.15 up to the call of `deepspeed.initialize`; what
//! the engine then makes of the tree is not decided here. Neither library's sequence parallelism,
//! MS-AMP, nor evaluation without training is modelled.

mod accelerate;
mod arguments;
mod config_tree;
mod fills;
mod hf_trainer;
mod model;
mod plugin;
mod prepare;
mod problem;
mod run;

use std::fmt;
use std::str::FromStr;

pub use arguments::{
    AccelerateArguments, Arguments, MixedPrecision, Number, OptimizerInCode, PluginArguments,
    SchedulerInCode, TrainerArguments,
};
pub use fills::fills_auto;
pub use model::{ModelFacts, TextConfigFacts};
pub use problem::{FilledKey, How, Operation, Pending, Problem, ProblemKind};

pub use crate::python::{python_equal, python_type};
use crate::syntax::Node;

/// Who reads the config first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FrontEnd {
    /// A script that calls `deepspeed.initialize` itself: nobody fills anything.
    DeepSpeed,
    /// `transformers.Trainer` with its `deepspeed` argument.
    HfTrainer,
    /// A script around `accelerate.Accelerator`.
    Accelerate,
}

impl FrontEnd {
    /// All front ends.
    pub const ALL: [Self; 3] = [Self::DeepSpeed, Self::HfTrainer, Self::Accelerate];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::DeepSpeed => "deepspeed",
            Self::HfTrainer => "hf-trainer",
            Self::Accelerate => "accelerate",
        }
    }
}

impl fmt::Display for FrontEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no front end's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a supported framework; use `deepspeed`, `hf-trainer` or `accelerate`")]
pub struct UnknownFrontEnd(pub String);

impl FromStr for FrontEnd {
    type Err = UnknownFrontEnd;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|front_end| front_end.name() == name)
            .ok_or_else(|| UnknownFrontEnd(name.to_owned()))
    }
}

/// What a front end makes of a config.
#[derive(Debug, Clone, PartialEq)]
pub struct Filled {
    /// The tree the engine will see, as far as it is known.
    ///
    /// A filled value has the span of the `"auto"` it replaces, an overwritten one the span of what
    /// stood there. Inserted keys and values have an empty span at the start of the object they were
    /// put into. A pending key still holds `"auto"`. Duplicate keys are collapsed as Python's reader
    /// does (last value, first position). With problems, this is the tree at the moment of refusal.
    pub root: Node,
    /// Why the front end would refuse. Empty means that the engine is reached.
    pub problems: Vec<Problem>,
    /// The keys that hold `"auto"` in [`Filled::root`] because what fills them is not known here.
    pub pending: Vec<Pending>,
    /// Every value the front end wrote, in the order it did.
    pub filled: Vec<FilledKey>,
}

impl Filled {
    /// Whether `path` will be filled when the script runs.
    pub fn is_pending(&self, path: &str) -> bool {
        self.pending.iter().any(|pending| pending.path == path)
    }
}

/// Does to `root` what `front_end` would do before it calls the engine.
///
/// `model` and `world_size` are `None` when not known; what depends on them then stays pending.
pub fn fill(
    front_end: FrontEnd,
    root: &Node,
    arguments: &Arguments,
    model: Option<&ModelFacts>,
    world_size: Option<u64>,
) -> Filled {
    let surroundings = run::Surroundings { arguments, model, world_size };
    let finished = match front_end {
        FrontEnd::DeepSpeed => {
            return Filled {
                root: root.clone(),
                problems: Vec::new(),
                pending: Vec::new(),
                filled: Vec::new(),
            };
        }
        FrontEnd::HfTrainer => hf_trainer::run(root, &surroundings),
        FrontEnd::Accelerate => accelerate::run(root, &surroundings),
    };
    finished.into_filled()
}

#[cfg(test)]
mod tests;
