//! What a rule is: its name, its words and examples that break it.

use zeropilot_config::front_end::{Arguments, FrontEnd, ModelFacts};

use crate::script::Script;
use zeropilot_text::Text;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The run does not start, or ends at once.
    Error,
    /// The run goes on and does something other than what is written.
    Warning,
    /// Worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What a rule is about. The letter begins its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// B: batch arithmetic.
    Batch,
    /// A: `"auto"`.
    Auto,
    /// K: keys, types and file format.
    Keys,
    /// V: engine versions.
    Versions,
    /// P: precision and loss scale.
    Precision,
    /// O: optimizer, scheduler, gradients.
    Optimizer,
    /// F: offload and NVMe.
    Offload,
    /// G: buckets, gradients and GPU memory.
    Gradients,
    /// C: activation checkpointing.
    Checkpointing,
    /// X: ZeRO++.
    ZeroPlusPlus,
    /// S: saving and resuming.
    Saving,
    /// I: what integrations ask.
    Integrations,
    /// L: launching.
    Launch,
    /// H: what hangs.
    Hangs,
    /// T: training code that runs and trains something else.
    TrainingCode,
    /// Z: how models are built under ZeRO stage 3.
    Construction,
}

impl Group {
    /// The letter that begins the codes of its rules.
    pub fn letter(self) -> char {
        match self {
            Self::Batch => 'B',
            Self::Auto => 'A',
            Self::Keys => 'K',
            Self::Versions => 'V',
            Self::Precision => 'P',
            Self::Optimizer => 'O',
            Self::Offload => 'F',
            Self::Gradients => 'G',
            Self::Checkpointing => 'C',
            Self::ZeroPlusPlus => 'X',
            Self::Saving => 'S',
            Self::Integrations => 'I',
            Self::Launch => 'L',
            Self::Hangs => 'H',
            Self::TrainingCode => 'T',
            Self::Construction => 'Z',
        }
    }
}

/// One way of wording a finding: what is wrong, why it matters, what to do.
#[derive(Debug)]
pub struct Wording {
    /// What is wrong: the one sentence that is shown if only one can be.
    pub message: Text,
    /// Why it matters: what the engine does with it.
    pub why: Text,
    /// What to do.
    pub help: Text,
}

/// A config that breaks a rule, with what must be known around it.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// The file.
    pub config: &'static str,
    /// Who reads it.
    pub front_end: FrontEnd,
    /// Whether that is only guessed.
    pub is_reader_guessed: bool,
    /// How many ranks there are, if known.
    pub world_size: Option<usize>,
    /// The engine; the newest if not said.
    pub version: Option<&'static str>,
    /// What the training script says.
    pub arguments: fn() -> Arguments,
    /// What is known about the model.
    pub model: fn() -> Option<ModelFacts>,
    /// What else the script decides.
    pub script: fn() -> Script,
    /// Versions that are installed.
    pub packages: &'static [(&'static str, &'static str)],
    /// Whether the text is a launch script instead of a config.
    pub is_job: bool,
    /// Files that a launch script names, and what is in them.
    pub files: &'static [(&'static str, &'static str)],
}

fn no_model() -> Option<ModelFacts> {
    None
}

impl Example {
    /// A file that bare DeepSpeed reads on two ranks.
    pub const fn new(config: &'static str) -> Self {
        Self {
            config,
            front_end: FrontEnd::DeepSpeed,
            is_reader_guessed: false,
            world_size: Some(2),
            version: None,
            arguments: Arguments::default,
            model: no_model,
            script: Script::default,
            packages: &[],
            is_job: false,
            files: &[],
        }
    }

    /// A launch script.
    pub const fn job(text: &'static str) -> Self {
        Self { is_job: true, ..Self::new(text) }
    }

    /// With files that the launch script names.
    pub const fn files(self, files: &'static [(&'static str, &'static str)]) -> Self {
        Self { files, ..self }
    }

    /// With this number of ranks.
    pub const fn ranks(self, world_size: usize) -> Self {
        Self { world_size: Some(world_size), ..self }
    }

    /// With the number of ranks not known.
    pub const fn unknown_ranks(self) -> Self {
        Self { world_size: None, ..self }
    }

    /// Read by this front end.
    pub const fn read_by(self, front_end: FrontEnd) -> Self {
        Self { front_end, ..self }
    }

    /// With nobody having said who reads it.
    pub const fn unsaid_reader(self) -> Self {
        Self { is_reader_guessed: true, ..self }
    }

    /// For this engine.
    pub const fn version(self, version: &'static str) -> Self {
        Self { version: Some(version), ..self }
    }

    /// With these versions installed.
    pub const fn packages(self, packages: &'static [(&'static str, &'static str)]) -> Self {
        Self { packages, ..self }
    }

    /// With these arguments of the training script.
    pub const fn arguments(self, arguments: fn() -> Arguments) -> Self {
        Self { arguments, ..self }
    }

    /// With these other decisions of the script.
    pub const fn script(self, script: fn() -> Script) -> Self {
        Self { script, ..self }
    }

    /// With this model.
    pub const fn model(self, model: fn() -> Option<ModelFacts>) -> Self {
        Self { model, ..self }
    }
}

/// One rule, as data; `registry` says what calls it.
#[derive(Debug)]
pub struct Rule {
    /// The stable code, such as `B03`.
    pub code: &'static str,
    /// What it is about, in words joined by hyphens.
    pub name: &'static str,
    /// Its group.
    pub group: Group,
    /// How bad it is, unless a finding says otherwise.
    pub severity: Severity,
    /// What it is about, in one line.
    pub summary: Text,
    /// All ways it words its findings.
    pub wordings: &'static [&'static Wording],
    /// Where people met it: `owner/repository#number`.
    pub sources: &'static [&'static str],
    /// Configs that break it, one for each wording or more.
    pub examples: &'static [Example],
    /// Configs that look alike and that it has nothing to say about.
    pub good: &'static [Example],
    /// Whether it says that something written has no effect, and that the engine does not say so.
    pub is_no_op: bool,
}

impl Rule {
    /// Its place among all rules: by group, then by the two digits of its code.
    pub(crate) const fn position(&self) -> u16 {
        let code = self.code.as_bytes();
        let digits = [code[1] - b'0', code[2] - b'0'];
        self.group as u16 * 100 + digits[0] as u16 * 10 + digits[1] as u16
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}
