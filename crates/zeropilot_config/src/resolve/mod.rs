//! From the tree of a config file to what the engine makes of it: accepted with every value
//! resolved, or refused with every reason.
//!
//! The engine stops at its first exception. We go on, section by section, and report all of them;
//! the verdict is the same. Words and severities are not known here.

mod batch;
mod by_key;
mod compression;
mod data_efficiency;
mod elasticity;
mod loader;
mod optimizer;
mod precision;
mod raw_sections;
mod resolved;
mod world;

use crate::judge::Judge;
use crate::problem::{Problem, ProblemKind};
use crate::python::{PyValue, kind_of};
use crate::schema::EngineVersion;
use crate::syntax::{Node, Value};

pub use by_key::ValuesByKey;
use loader::Loader;
pub use resolved::ResolvedConfig;

/// What the engine is handed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A file, by its path.
    File,
    /// A dictionary, as front ends pass it.
    Dictionary,
}

/// The device the run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accelerator {
    /// An NVIDIA GPU.
    Cuda,
    /// No GPU.
    Cpu,
}

/// Everything beside the config that decides its fate.
#[derive(Debug, Clone, Copy)]
pub struct Circumstances {
    /// The engine.
    pub version: EngineVersion,
    /// How many ranks the run has.
    pub world_size: usize,
    /// How the engine gets the config.
    pub source: Source,
    /// The device.
    pub accelerator: Accelerator,
}

impl Circumstances {
    /// A file on GPUs.
    pub fn new(version: EngineVersion, world_size: usize) -> Self {
        Self { version, world_size, source: Source::File, accelerator: Accelerator::Cuda }
    }
}

/// The engine's verdict, as far as loading the config goes.
#[derive(Debug)]
pub struct Resolution {
    /// All reasons to refuse; empty means accepted.
    pub problems: Vec<Problem>,
    /// What the values became; `None` if refused.
    pub resolved: Option<ResolvedConfig>,
}

impl Resolution {
    /// Whether the engine goes on with this config.
    pub fn is_accepted(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Resolves a config whose keys are unique in each object.
///
/// A file with duplicate keys never gets this far in the engine; see
/// [`crate::syntax::Document::duplicate_keys`].
pub fn resolve(root: &Node, circumstances: Circumstances) -> Resolution {
    let schema = circumstances.version.schema();
    let mut judge = Judge::new(schema);
    let Value::Object(members) = &root.value else {
        judge.report_root(ProblemKind::RootNotAnObject(kind_of(&root.value)), root.span);
        return Resolution { problems: judge.problems, resolved: None };
    };
    let mut loader = Loader::new(judge, members, root.span, circumstances);
    loader.load();
    let Loader { judge, special, .. } = loader;
    let resolved = judge
        .problems
        .is_empty()
        .then(|| ResolvedConfig::new(circumstances.version, members, special));
    Resolution { problems: judge.problems, resolved }
}

/// A resolved attribute that is more than a copied value, by its dotted name in the engine.
pub(crate) type Special = Vec<(&'static str, PyValue)>;
