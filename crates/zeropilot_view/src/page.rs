//! What a page gets beside answers: words that it lays out itself, and what can be chosen.

use serde::Serialize;

use crate::listing::{CatalogueGpu, CatalogueModel};
use crate::memory::Frame;

/// A checked config in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckWords {
    /// The report.
    pub text: String,
}

/// A config with its fixes applied.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FixWords {
    /// The config as it is now.
    pub text: String,
    /// What changed, as a patch.
    pub diff: String,
}

/// A key or a concept in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TopicWords {
    /// As a terminal shows it.
    pub text: String,
    /// As an editor shows it.
    pub markdown: Option<String>,
}

/// What a GPU holds through a step, and what it sends.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilmWords {
    /// Moment by moment.
    pub frames: Vec<Frame>,
    /// What it sends.
    pub sent: String,
}

/// A step in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SimulationWords {
    /// The report.
    pub text: String,
    /// What it costs to finish.
    pub cost_estimate: Option<String>,
    /// Where the time goes: kernels, then what they wait for.
    pub shares: Vec<ShareWords>,
    /// The longest wait, and what would help.
    pub advice: String,
    /// What happens in its streams.
    pub streams: StreamsWords,
}

/// The streams of a step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamsWords {
    /// How long the step takes, in seconds.
    pub end: f64,
    /// Moments at equal distances, from its beginning to its end.
    pub axis: Vec<String>,
    /// Every stream in which something happens.
    pub lanes: Vec<LaneWords>,
    /// What the colours stand for.
    pub colours: Vec<ColourWords>,
}

/// A stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LaneWords {
    /// What it is called.
    pub words: &'static str,
    /// What happens in it.
    pub blocks: Vec<BlockWords>,
}

/// Something that happens in a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockWords {
    /// When it begins, in seconds.
    pub begin: f64,
    /// When it ends.
    pub end: f64,
    /// What it is.
    pub words: String,
    /// How long it takes.
    pub time: String,
    /// Its colour.
    pub colour: &'static str,
}

/// A colour, and what it stands for.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ColourWords {
    /// What it stands for.
    pub words: &'static str,
    /// The colour.
    pub colour: &'static str,
}

/// A part of the time of a step.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShareWords {
    /// What takes it.
    pub words: &'static str,
    /// How long.
    pub time: String,
    /// Its share of the step.
    pub share: f64,
}

/// What can be chosen.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Catalogue<'a> {
    /// Models by name.
    pub models: Vec<CatalogueModel<'a>>,
    /// GPUs by name.
    pub accelerators: Vec<CatalogueGpu<'a>>,
    /// DeepSpeed versions, the newest first.
    pub engines: Vec<&'static str>,
    /// What may read a config.
    pub front_ends: Vec<&'static str>,
    /// What a config may be written for.
    pub targets: Vec<&'static str>,
    /// The version of zeropilot.
    pub version: &'static str,
}

/// What can be chosen, in words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CatalogueWords {
    /// Parts of memory.
    pub parts: Vec<PartWords>,
    /// Concepts that can be asked for.
    pub concepts: Vec<ConceptWords>,
}

/// A part of memory, with its words and its colour.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PartWords {
    /// Its name in answers.
    pub name: &'static str,
    /// What people call it.
    pub words: &'static str,
    /// Its colour.
    pub colour: &'static str,
}

/// A concept with its title.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ConceptWords {
    /// Its name.
    pub name: &'static str,
    /// What it is called.
    pub title: &'static str,
}
