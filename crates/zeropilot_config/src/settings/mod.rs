//! The typed view of a resolved config: what decides memory, traffic and time.
//!
//! Everything else about a config stays in [`ResolvedConfig::attributes`]. Sizes are
//! [`zeropilot_units::Elements`], never bytes: that is what the engine's keys mean.

mod batch;
mod data_types;
mod precision;
mod reading;
mod tensor_parallel;
mod zero;

pub use batch::Batch;
pub use data_types::DataType;
pub use precision::{LossScale, MasterWeights, Precision};
pub use tensor_parallel::TensorParallel;
pub use zero::{LeafModules, OffloadDevice, OffloadOptimizer, OffloadParam, Stage, Zero};

use crate::python::PyValue;
use crate::resolve::ResolvedConfig;

/// The optimizer that the engine builds from the config.
#[derive(Debug, Clone, PartialEq)]
pub struct Optimizer {
    /// Its name; in lower case if the engine knows it.
    pub name: String,
    /// Its parameters, unchecked: the optimizer judges them when it is built.
    pub parameters: PyValue,
}

impl ResolvedConfig {
    /// `zero_optimization`.
    pub fn zero(&self) -> Zero {
        Zero::read(&self.value("zero_config"))
    }

    /// `tensor_parallel`, where it splits anything.
    pub fn tensor_parallel(&self) -> Option<TensorParallel> {
        TensorParallel::read(&self.value("tensor_parallel_config"))
    }

    /// `fp16` and `bf16`.
    pub fn precision(&self) -> Precision {
        Precision::read(self)
    }

    /// Whether gradients are clipped.
    pub fn clips_gradients(&self) -> bool {
        self.attribute("gradient_clipping").is_true()
    }

    /// The three batch numbers, or `None` if one is beyond what a machine could hold.
    pub fn batch(&self) -> Option<Batch> {
        Batch::read(self)
    }

    /// The optimizer, if the config names one; otherwise the script brings its own.
    pub fn optimizer(&self) -> Option<Optimizer> {
        match self.value("optimizer_name") {
            PyValue::Str(name) => {
                Some(Optimizer { name, parameters: self.value("optimizer_params") })
            }
            _ => None,
        }
    }
}
