//! What is answered.

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, Certainty, Phase};
use crate::clue::Object;
use crate::message::Message;

/// Which memory ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomMemory"))]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// A GPU's.
    Device,
    /// The machine's.
    Host,
}

/// Something that the log does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "OomGap"))]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// No frames, so that the phase is not known.
    Traceback,
    /// No numbers of the allocator.
    Numbers,
    /// Which processes share the GPU.
    Processes,
    /// Who killed the process.
    Killer,
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// From 1.
    pub number: u64,
    /// Its text, cut.
    pub text: String,
}

/// Why memory ran out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// The cause.
    pub cause: Cause,
    /// How sure it is.
    pub certainty: Certainty,
    /// Which memory.
    pub memory: Memory,
    /// What the program was doing, if the log shows it.
    pub phase: Option<Phase>,
    /// What it was allocating, if the log shows it.
    pub object: Option<Object>,
    /// The numbers of the message.
    pub message: Message,
    /// The rank whose message was read.
    pub rank: Option<u32>,
    /// All ranks that ran out, as far as lines name them.
    pub ranks: Vec<u32>,
    /// Messages in the log.
    pub messages: u64,
    /// The lines that this rests on, in order.
    pub evidence: Vec<Line>,
    /// What the log does not show.
    pub gaps: Vec<Gap>,
}
