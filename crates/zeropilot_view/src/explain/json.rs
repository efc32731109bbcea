//! Explanations for programs. The shapes are a contract: keys are added, never changed.

use serde::Serialize;
use zeropilot_ask::Footprint;
use zeropilot_config::keys::{self, Found, KeyText, Presence, Status, history};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::{Difference, ExplainedKey, Explanation, Side};
use zeropilot_text::Language;

use super::{Concept, Topic, words};
use crate::json::written;
use crate::place::{Place, Places};
use crate::provenance;

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Shape<'a> {
    Index { concepts: Vec<Named>, keys: Vec<&'static str> },
    Key(Box<Key<'a>>),
    Names { keys: &'a [String] },
    Concept { name: &'a str, title: &'static str, text: &'static str, keys: &'a [String] },
    File(Box<File<'a>>),
    Difference { files: [&'a str; 2], changes: Vec<Change<'a>> },
    Cost { model: &'a str, files: Vec<Cost<'a>> },
}

/// What a config costs in a step.
#[derive(Serialize)]
struct Cost<'a> {
    file: &'a str,
    /// Bytes of the fullest GPU, of a host, sent by each GPU, and between it and its host.
    device: u64,
    host: u64,
    sent: u64,
    to_device: u64,
    to_host: u64,
    /// Missing where the speed of the GPUs is not known.
    seconds: Option<f64>,
    sequences: u64,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    title: &'static str,
}

#[derive(Serialize)]
struct Key<'a> {
    path: &'a str,
    /// Set if the text is that of what holds the key.
    within: Option<&'a str>,
    #[serde(flatten)]
    text: Option<Words<'a>>,
    versions: Vec<InVersion>,
}

#[derive(Serialize)]
struct Words<'a> {
    what: &'a str,
    unit: &'static str,
    is_read: bool,
    memory: Option<&'a str>,
    speed: Option<&'a str>,
    mistake: Option<&'a str>,
    source: Vec<&'a str>,
}

#[derive(Serialize)]
struct InVersion {
    version: &'static str,
    status: &'static str,
    default: Option<PyValue>,
    replaced_by: Option<String>,
}

#[derive(Serialize)]
struct File<'a> {
    /// What the job says that uses it, where that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<serde_json::Value>,
    file: &'a str,
    verdict: &'static str,
    deepspeed_version: &'static str,
    front_end: &'static str,
    world_size: usize,
    keys: Vec<FileKey<'a>>,
    /// Findings about no key of the file.
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct FileKey<'a> {
    path: &'a str,
    span: Place,
    status: &'static str,
    written: &'a str,
    value: Option<&'a PyValue>,
    filled_from: Option<&'static str>,
    what: Option<&'static str>,
    memory: Option<&'static str>,
    speed: Option<&'static str>,
    findings: Vec<Finding>,
}

#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: &'static str,
    message: String,
    help: String,
}

#[derive(Serialize)]
struct Change<'a> {
    path: &'a str,
    left: Value<'a>,
    right: Value<'a>,
    what: Option<&'static str>,
    memory: Option<&'static str>,
    speed: Option<&'static str>,
}

#[derive(Serialize)]
struct Value<'a> {
    status: &'static str,
    value: Option<&'a PyValue>,
}

/// The object of a topic.
pub(super) fn topic(topic: &Topic<'_>, language: Language) -> String {
    written(&match topic {
        Topic::Index => Shape::Index {
            concepts: Concept::all()
                .iter()
                .map(|concept| Named { name: &concept.name, title: concept.title(language) })
                .collect(),
            keys: keys::all().map(|(path, _)| path).collect(),
        },
        Topic::Key(found) => key(found, language),
        Topic::Concept(concept) => Shape::Concept {
            name: &concept.name,
            title: concept.title(language),
            text: concept.text(language),
            keys: &concept.keys,
        },
        Topic::File { name, bytes, explained, job } => {
            let job = job.map(provenance::json);
            Shape::File(Box::new(File { job, ..file(name, bytes, explained, language) }))
        }
        Topic::Differences { names, found } => Shape::Difference {
            files: *names,
            changes: found.iter().map(|difference| change(difference, language)).collect(),
        },
        Topic::Costs { model, names, costs } => Shape::Cost {
            model,
            files: names.iter().zip(*costs).map(|(file, cost)| self::cost(file, cost)).collect(),
        },
    })
}

fn cost<'a>(file: &'a str, cost: &Footprint) -> Cost<'a> {
    Cost {
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
        Found::Several(paths) => return Shape::Names { keys: paths },
        Found::Unknown(_) => return Shape::Names { keys: &[] },
    };
    let text = keys::text(within.unwrap_or(path));
    let text = text.map(|text| text_words(text, language));
    Shape::Key(Box::new(Key { path, within, text, versions: versions(path) }))
}

fn text_words(text: &KeyText, language: Language) -> Words<'_> {
    Words {
        what: words::words(&text.what, language),
        unit: words::unit_name(text.unit),
        is_read: !text.is_unread(),
        memory: text.memory.as_ref().map(|memory| words::words(memory, language)),
        speed: text.speed.as_ref().map(|speed| words::words(speed, language)),
        mistake: text.mistake.as_ref().map(|mistake| words::words(mistake, language)),
        source: text.source.iter().map(AsRef::as_ref).collect(),
    }
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
) -> File<'a> {
    let report = &explained.report;
    let places = Places::new(bytes);
    File {
        job: None,
        file: name,
        verdict: report.verdict.name(),
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

fn findings(positions: &[usize], explained: &Explanation, language: Language) -> Vec<Finding> {
    let one = |position: &usize| {
        let diagnostic = &explained.report.diagnostics[*position];
        Finding {
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

fn side(side: &Side) -> Value<'_> {
    match side {
        Side::Value(value) => Value { status: "value", value: Some(value) },
        Side::Section => Value { status: "section", value: None },
        Side::Open => Value { status: "open", value: None },
        Side::Absent => Value { status: "absent", value: None },
    }
}
