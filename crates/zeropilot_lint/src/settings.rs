//! Everything beside a config that decides what becomes of it.

use zeropilot_config::front_end::{Arguments, FrontEnd, ModelFacts};
use zeropilot_config::packages::Packages;
use zeropilot_config::schema::EngineVersion;

use crate::script::Script;
use crate::selection::Selection;

/// Everything beside the file that decides its fate.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine.
    pub version: EngineVersion,
    /// How many ranks the run has, if known.
    pub world_size: Option<usize>,
    /// Who reads the file; guessed from it if not known.
    pub front_end: Option<FrontEnd>,
    /// What the training script says.
    pub arguments: Arguments,
    /// What is known about the model.
    pub model: Option<ModelFacts>,
    /// What else the script decides.
    pub script: Script,
    /// The versions that are installed, as far as they are known; advisories are compared with them.
    pub packages: Packages,
    /// Which findings are wanted. What is not told still counts for the verdict.
    pub selection: Selection,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: EngineVersion::NEWEST,
            world_size: None,
            front_end: None,
            arguments: Arguments::default(),
            model: None,
            script: Script::default(),
            packages: Packages::default(),
            selection: Selection::default(),
        }
    }
}
