//! Explanations for programs. The shapes are a contract: keys are added, never changed.

use serde::Serialize;
use zeropilot_ask::Footprint;
use zeropilot_config::keys::{self, Claim, Found, KeyText, Presence, Status, history};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Difference, ExplainedKey, Explanation, Side};
use zeropilot_text::Language;

use super::{Concept, Topic, words};
use crate::json::{RunVerdict, written};
use crate::place::{Place, Places};
use crate::provenance;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape<'a> {
    Index(Index),
    Key(Box<Key<'a>>),
    Names(Names<'a>),
    Concept(ConceptPage<'a>),
    File(Box<ExplainedFile<'a>>),
    Difference(Differences<'a>),
    Cost(Costs<'a>),
}

/// Keys and concepts that `explain` describes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Index {
    concepts: Vec<ConceptName>,
    keys: Vec<&'static str>,
}

/// A concept that `explain` describes.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ConceptName {
    name: &'static str,
    title: &'static str,
}

/// A key with its effect, its cost and common mistakes; `within` if the text describes the section that contains the
/// key.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Key<'a> {
    path: &'a str,
    within: Option<&'a str>,
    what: Option<&'a str>,
    unit: Option<&'static str>,
    is_read: Option<bool>,
    needs: Vec<Need<'a>>,
    /// What was read in DeepSpeed's source and is not measured: `effect`, `needs`.
    unmeasured: Vec<&'static str>,
    memory: Option<&'a str>,
    speed: Option<&'a str>,
    mistake: Option<&'a str>,
    source: Vec<&'a str>,
    versions: Vec<InVersion>,
}

/// A key and the values that give the described key an effect.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Need<'a> {
    key: &'a str,
    values: &'a [serde_json::Value],
}

/// A key in one DeepSpeed version.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct InVersion {
    version: &'static str,
    status: &'static str,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    default: Option<PyValue>,
    replaced_by: Option<String>,
}

/// A name that several keys share.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Names<'a> {
    keys: &'a [String],
}

/// A concept.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Concept"))]
pub(crate) struct ConceptPage<'a> {
    name: &'a str,
    title: &'static str,
    text: &'static str,
    keys: &'a [String],
}

/// A whole config, key by key; `findings` are the findings that do not belong to a key.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ExplainedFile<'a> {
    /// What the job says that uses it, if a job was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<provenance::Shape<'a>>,
    file: &'a str,
    verdict: RunVerdict,
    deepspeed_version: &'static str,
    front_end: &'static str,
    world_size: usize,
    keys: Vec<FileKey<'a>>,
    findings: Vec<FileFinding>,
}

/// A key as a config has it.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileKey<'a> {
    path: &'a str,
    span: Place,
    status: &'static str,
    written: &'a str,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    value: Option<&'a PyValue>,
    filled_from: Option<&'static str>,
    what: Option<&'static str>,
    memory: Option<&'static str>,
    speed: Option<&'static str>,
    findings: Vec<FileFinding>,
}

/// A finding in short.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileFinding {
    code: &'static str,
    severity: &'static str,
    message: String,
    help: String,
}

/// Differences between two configs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Difference"))]
pub(crate) struct Differences<'a> {
    files: Vec<&'a str>,
    changes: Vec<Change<'a>>,
}

/// A key that differs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Change<'a> {
    path: &'a str,
    left: KeySide<'a>,
    right: KeySide<'a>,
    what: Option<&'static str>,
    memory: Option<&'static str>,
    speed: Option<&'static str>,
}

/// A key in one of two configs.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct KeySide<'a> {
    status: &'static str,
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Value"))]
    value: Option<&'a PyValue>,
}

/// Cost of configs in a step.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Costs<'a> {
    model: &'a str,
    files: Vec<FileCost<'a>>,
}

/// Bytes on the GPU with the highest use, on a host, sent by each GPU, and between GPU and host; seconds if the speed
/// of the GPUs is known.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct FileCost<'a> {
    file: &'a str,
    device: u64,
    host: u64,
    sent: u64,
    to_device: u64,
    to_host: u64,
    seconds: Option<f64>,
    sequences: u64,
}

/// The object of a topic.
pub(super) fn topic(topic: &Topic<'_>, language: Language) -> String {
    written(&match topic {
        Topic::Index => Shape::Index(Index {
            concepts: Concept::all()
                .iter()
                .map(|concept| ConceptName { name: &concept.name, title: concept.title(language) })
                .collect(),
            keys: keys::all().map(|(path, _)| path).collect(),
        }),
        Topic::Key(found) => key(found, language),
        Topic::Concept(concept) => Shape::Concept(ConceptPage {
            name: &concept.name,
            title: concept.title(language),
            text: concept.text(language),
            keys: &concept.keys,
        }),
        Topic::File { name, bytes, explained, job } => {
            let job = job.map(Into::into);
            Shape::File(Box::new(ExplainedFile { job, ..file(name, bytes, explained, language) }))
        }
        Topic::Differences { names, found } => Shape::Difference(Differences {
            files: names.to_vec(),
            changes: found.iter().map(|difference| change(difference, language)).collect(),
        }),
        Topic::Costs { model, names, costs } => Shape::Cost(Costs {
            model,
            files: names.iter().zip(*costs).map(|(file, cost)| self::cost(file, cost)).collect(),
        }),
    })
}

fn cost<'a>(file: &'a str, cost: &Footprint) -> FileCost<'a> {
    FileCost {
        file,
        device: cost.device.expected().0,
        host: cost.node.expected().0,
        sent: cost.traffic.sent,
        to_device: cost.traffic.to_device,
        to_host: cost.traffic.to_host,
        seconds: cost.time.map(|time| time.expected.total),
        sequences: cost.sequences,
    }
}

fn key(found: &Found, language: Language) -> Shape<'_> {
    let (path, within) = match found {
        Found::Key(path) | Found::Gone(path) => (path, None),
        Found::HandedOn { path, within } => (path, Some(within.as_str())),
        Found::Several(paths) => return Shape::Names(Names { keys: paths }),
        Found::Unknown(_) => return Shape::Names(Names { keys: &[] }),
    };
    let text = keys::text(within.unwrap_or(path));
    let said = |words: fn(&KeyText) -> Option<&keys::Words>| {
        text.and_then(words).map(|it| words::words(it, language))
    };
    Shape::Key(Box::new(Key {
        path,
        within,
        what: text.map(|text| words::words(&text.what, language)),
        unit: text.map(|text| words::unit_name(text.unit)),
        is_read: text.map(|text| !text.is_unread()),
        needs: text.map_or_else(Vec::new, needs),
        unmeasured: text.map_or_else(Vec::new, unmeasured),
        memory: said(|text| text.memory.as_ref()),
        speed: said(|text| text.speed.as_ref()),
        mistake: said(|text| text.mistake.as_ref()),
        source: text.map_or_else(Vec::new, |text| text.source.iter().map(AsRef::as_ref).collect()),
        versions: versions(path),
    }))
}

fn needs(text: &KeyText) -> Vec<Need<'_>> {
    text.needs.iter().map(|(key, values)| Need { key, values }).collect()
}

fn unmeasured(text: &KeyText) -> Vec<&'static str> {
    let name = |claim: &Claim| match claim {
        Claim::Effect => "effect",
        Claim::Needs => "needs",
    };
    text.unmeasured.iter().map(name).collect()
}

fn versions(path: &str) -> Vec<InVersion> {
    let one = |(version, presence): (EngineVersion, Presence<'_>)| {
        let version = version.name();
        match presence {
            Presence::Read(facts) => InVersion {
                version,
                status: if facts.deprecated.is_some() { "deprecated" } else { "read" },
                replaced_by: facts.deprecated.map(|deprecated| deprecated.new.clone()),
                default: facts.default,
            },
            Presence::Refused(_) => {
                InVersion { version, status: "refused", default: None, replaced_by: None }
            }
            Presence::Absent => {
                InVersion { version, status: "absent", default: None, replaced_by: None }
            }
        }
    };
    history(path).into_iter().map(one).collect()
}

fn file<'a>(
    name: &'a str,
    bytes: &[u8],
    explained: &'a Explanation,
    language: Language,
) -> ExplainedFile<'a> {
    let report = &explained.report;
    let places = Places::new(bytes);
    ExplainedFile {
        job: None,
        file: name,
        verdict: report.outcome().into(),
        deepspeed_version: report.version.name(),
        front_end: report.front_end.name(),
        world_size: report.world.size,
        keys: explained
            .keys
            .iter()
            .map(|key| file_key(key, explained, &places, language))
            .collect(),
        findings: findings(&explained.loose, explained, language),
    }
}

fn file_key<'a>(
    key: &'a ExplainedKey,
    explained: &Explanation,
    places: &Places,
    language: Language,
) -> FileKey<'a> {
    let (status, text) = match &key.status {
        Status::Read(path) => ("read", path.as_deref().and_then(keys::text)),
        Status::HandedOn(_) => ("handed-on", None),
        Status::Refused => ("refused", None),
        Status::Unread => ("unread", None),
    };
    let status = if text.is_some_and(KeyText::is_unread) { "unread" } else { status };
    let cost = |words: Option<&'static keys::Words>| words.map(|it| words::words(it, language));
    FileKey {
        path: &key.path,
        span: places.place(key.span),
        status,
        written: &key.written,
        value: key.value.as_ref(),
        filled_from: key.filled_from,
        what: text.map(|text| words::words(&text.what, language)),
        memory: cost(text.and_then(|text| text.memory.as_ref())),
        speed: cost(text.and_then(|text| text.speed.as_ref())),
        findings: findings(&key.findings, explained, language),
    }
}

fn findings(positions: &[usize], explained: &Explanation, language: Language) -> Vec<FileFinding> {
    let one = |position: &usize| {
        let diagnostic = &explained.report.diagnostics[*position];
        FileFinding {
            code: diagnostic.rule.code,
            severity: diagnostic.severity.name(),
            message: diagnostic.message(language),
            help: diagnostic.help(language),
        }
    };
    positions.iter().map(one).collect()
}

fn change(difference: &Difference, language: Language) -> Change<'_> {
    let text = keys::canonical(&difference.path).and_then(|path| keys::text(&path));
    let cost = |words: Option<&'static keys::Words>| words.map(|it| words::words(it, language));
    Change {
        path: &difference.path,
        left: side(&difference.left),
        right: side(&difference.right),
        what: text.map(|text| words::words(&text.what, language)),
        memory: cost(text.and_then(|text| text.memory.as_ref())),
        speed: cost(text.and_then(|text| text.speed.as_ref())),
    }
}

fn side(side: &Side) -> KeySide<'_> {
    match side {
        Side::Value(value) => KeySide { status: "value", value: Some(value) },
        Side::Section => KeySide { status: "section", value: None },
        Side::Open => KeySide { status: "open", value: None },
        Side::Absent => KeySide { status: "absent", value: None },
    }
}
