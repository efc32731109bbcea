//! What a check gives: the verdict on a file, what its values become, and what was found in it.

use num_traits::ToPrimitive as _;
use zeropilot_config::front_end::{FrontEnd, Pending};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;

use crate::diagnostic::Diagnostic;
use crate::key_values::KeyValues;
use crate::rule::Severity;
use crate::world::World;

/// More findings than this help nobody; a hostile file must not fill memory with them.
pub(crate) const MAX_FINDINGS: usize = 1000;

/// What the config loader says: the framework that fills the file, then DeepSpeed's `DeepSpeedConfig`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It does.
    Accept,
    /// One of them rejects it.
    Reject,
}

/// What becomes of the run: the loader's verdict, and what the findings say happens after loading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The file loads, and no finding ends the run.
    Runs,
    /// The file loads, and a finding says that the run does not start or ends at once.
    Fails,
    /// The file does not load.
    Rejected,
}

/// What the values that people ask for became.
#[derive(Debug, Clone)]
pub struct ResolvedValues {
    /// Samples per optimizer step over all ranks; `None` if only known at run time.
    pub train_batch_size: Option<PyValue>,
    /// Samples one rank takes at once; `None` if only known at run time.
    pub micro_batch_size: Option<PyValue>,
    /// Micro batches per optimizer step; `None` if only known at run time.
    pub gradient_accumulation_steps: Option<PyValue>,
    /// Whether the script groups ranks that share samples, and only the run knows how many groups there are.
    pub shares_samples: bool,
    /// The ZeRO stage.
    pub stage: u8,
    /// By the engine's field names; `"auto"` where a value is only known at run time.
    pub zero_optimization: PyValue,
    /// Everything, by the keys of the file.
    pub keys: KeyValues,
}

/// All there is to say about a file.
#[derive(Debug, Clone)]
pub struct Report {
    /// Whether the file loads.
    pub verdict: Verdict,
    /// What the values became; `None` if refused.
    pub resolved: Option<ResolvedValues>,
    /// Of a refused file: what the values become without the keys that are refused, which are open here.
    pub partial: Option<ResolvedValues>,
    /// What was found, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// What was found before and is put right now, in the order it was.
    pub fixed: Vec<Diagnostic>,
    /// What was found and is not told, since the project's baseline holds it.
    pub known: Vec<Diagnostic>,
    /// Keys that are filled only when the script runs.
    pub pending: Vec<Pending>,
    /// The engine it was judged for.
    pub version: EngineVersion,
    /// Who reads it.
    pub front_end: FrontEnd,
    /// Whether that is a guess.
    pub front_end_guessed: bool,
    /// The number of ranks it was judged for.
    pub world: World,
}

impl ResolvedValues {
    /// The ZeRO stage, if the file settles it.
    pub fn known_stage(&self) -> Option<u8> {
        (!self.keys.is_open("zero_optimization.stage")).then_some(self.stage)
    }

    /// Micro-batches per update, if the file settles them.
    pub fn accumulation(&self) -> Option<i64> {
        match self.gradient_accumulation_steps.as_ref()? {
            PyValue::Int(steps) => steps.to_i64(),
            _ => None,
        }
    }
}

impl Report {
    /// What is known of the values, whether or not the file is refused.
    pub fn values(&self) -> Option<&ResolvedValues> {
        self.resolved.as_ref().or(self.partial.as_ref())
    }

    /// What becomes of a run with the file.
    pub fn outcome(&self) -> Outcome {
        let ends = |found: &Diagnostic| found.effect() == Severity::Error;
        match self.verdict {
            Verdict::Reject => Outcome::Rejected,
            Verdict::Accept if self.diagnostics.iter().chain(&self.known).any(ends) => {
                Outcome::Fails
            }
            Verdict::Accept => Outcome::Runs,
        }
    }
}
