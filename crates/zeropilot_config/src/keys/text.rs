//! The texts under `knowledge/keys`, as they are written there.
//!
//! They are parsed when the first one is asked for, so that a program which asks for none pays
//! nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// A sentence or two in both languages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// In English.
    #[serde(borrow)]
    pub en: Cow<'static, str>,
    /// In Chinese.
    #[serde(borrow)]
    pub zh: Cow<'static, str>,
}

/// What a value counts, or what it is where it counts nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names need no description")]
pub enum Unit {
    Boolean,
    Choice,
    Elements,
    Bytes,
    Samples,
    Tokens,
    Steps,
    #[serde(rename = "micro steps")]
    MicroSteps,
    Ranks,
    Layers,
    Count,
    Number,
    Share,
    #[serde(rename = "power of two")]
    PowerOfTwo,
    Path,
    Text,
    List,
    Section,
}

/// Why a key has no cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoCost {
    /// It changes neither memory nor speed.
    None,
    /// The engine loads it and nobody asks for it.
    Unread,
}

/// What a text says that only a run of the engine can prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// Its memory and its communication, or that it changes neither. Its speed is never measured.
    Effect,
    /// What it needs.
    Needs,
}

/// The values of other keys, by path, without which a key changes nothing. All of them have to
/// hold; they need not be enough.
pub type Needs = BTreeMap<String, Vec<serde_json::Value>>;

/// What is known about a key beside its schema.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyText {
    /// What its value counts.
    pub unit: Unit,
    /// What has to be set for it to have an effect.
    #[serde(default)]
    pub needs: Needs,
    /// What was read in the engine's source, and no recorded run shows.
    #[serde(default)]
    pub unmeasured: Vec<Claim>,
    /// Whether every recorded run with it needs the same memory and makes the same calls as the run without it.
    #[serde(default)]
    pub unchanged: bool,
    /// Whether it takes effect only on several nodes, which no recorded run has.
    #[serde(default)]
    pub several_nodes: bool,
    /// What it does.
    pub what: Words,
    /// Set if it costs nothing; otherwise `memory` or `speed` says what it costs.
    #[serde(default, rename = "effect")]
    pub no_cost: Option<NoCost>,
    /// What it does to memory.
    #[serde(default)]
    pub memory: Option<Words>,
    /// What it does to time and traffic.
    #[serde(default)]
    pub speed: Option<Words>,
    /// What people get wrong about it.
    #[serde(default)]
    pub mistake: Option<Words>,
    /// Where the engine reads it: `file: symbol` below the engine's package, or an address.
    #[serde(borrow)]
    pub source: Vec<Cow<'static, str>>,
}

impl KeyText {
    /// Whether nobody in the newest known engine asks for the key.
    pub fn is_unread(&self) -> bool {
        self.no_cost == Some(NoCost::Unread)
    }
}

type Texts = BTreeMap<Cow<'static, str>, KeyText>;

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        const FILES: &[(&str, &str)] = &[$((
            $name,
            const { zeropilot_knowledge::text(concat!("keys/", $name, ".json")) },
        )),+];
    };
}

files!(
    "activation_checkpointing",
    "aio",
    "autotuning",
    "batch",
    "checkpoint",
    "compile",
    "data_efficiency",
    "expert_parallel",
    "hybrid_engine",
    "logging",
    "optimizer",
    "pipeline",
    "precision",
    "tensor_parallel",
    "zero_optimization",
);

/// All texts by their path, in order.
pub(super) fn texts() -> &'static Texts {
    static TEXTS: OnceLock<Texts> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let mut all = Texts::new();
        for (name, json) in FILES {
            // The files are part of the program and a test reads them all.
            let texts: Texts = serde_json::from_str(json)
                .unwrap_or_else(|error| panic!("knowledge/keys/{name}.json: {error}"));
            all.extend(texts);
        }
        all
    })
}
