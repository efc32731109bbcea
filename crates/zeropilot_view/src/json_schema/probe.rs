//! Which kinds of value the resolver takes for a key, found by trying, as the schema of the engine itself was found.

use serde_json::{Value as Json, json};
use zeropilot_config::front_end;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;

/// Sorts of JSON value, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const NUMBER: Self = Self(4);
    pub(super) const STRING: Self = Self(8);
    pub(super) const ARRAY: Self = Self(16);
    pub(super) const OBJECT: Self = Self(32);
    const ALL: [(Self, &'static str); 6] = [
        (Self::NULL, "null"),
        (Self::BOOLEAN, "boolean"),
        (Self::NUMBER, "number"),
        (Self::STRING, "string"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn is_all(self) -> bool {
        self.0 == 63
    }

    /// Their names in JSON Schema.
    pub(super) fn names(self) -> Vec<&'static str> {
        Self::ALL.iter().filter(|(kind, _)| self.meets(*kind)).map(|(_, name)| *name).collect()
    }
}

/// Values that stand for all of their kind: one that is taken is enough.
const REPRESENTATIVES: [(Kinds, &[&str]); 6] = [
    (Kinds::NULL, &["null"]),
    (Kinds::BOOLEAN, &["true", "false"]),
    (Kinds::NUMBER, &["1", "0", "2", "3", "-1", "0.5", "8", "1000"]),
    (Kinds::STRING, &["\"x\"", "\"\"", "\"1\"", "\"0\"", "\"true\"", "\"0.5\"", "\"throughput\""]),
    (Kinds::ARRAY, &["[]", "[1]", "[\"x\"]", "[[\"a\", 1]]"]),
    (Kinds::OBJECT, &["{}", "{\"enabled\": false}", "{\"enabled\": true}"]),
];

/// What a key takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Taken {
    /// The kinds of which at least one value is taken.
    pub(super) kinds: Kinds,
    /// Whether numbers must be above zero.
    pub(super) positive: bool,
}

/// Whether `"auto"` may stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Auto {
    /// A front end puts a value in its place.
    Filled,
    /// The engine lets it pass.
    Passed,
    /// Nobody can use it.
    Refused,
}

/// Asks the resolver of one engine version.
pub(super) struct Probe {
    version: EngineVersion,
}

impl Probe {
    pub(super) fn new(version: EngineVersion) -> Self {
        Self { version }
    }

    /// What the key takes, with some words that it may want to hear.
    pub(super) fn kinds(&self, path: &str, words: &[String]) -> Taken {
        let mut kinds = Kinds::default();
        for (kind, values) in REPRESENTATIVES {
            let is_word = kind == Kinds::STRING && words.iter().any(|word| self.takes(path, word));
            if is_word || values.iter().any(|value| self.takes(path, value)) {
                kinds = kinds.with(kind);
            }
        }
        let positive =
            self.takes(path, "1") && !["0", "-1"].iter().any(|value| self.takes(path, value));
        Taken { kinds, positive }
    }

    /// Whether `"auto"` may stand there.
    pub(super) fn auto(&self, path: &str) -> Auto {
        if front_end::fills_auto(path) {
            Auto::Filled
        } else if self.takes(path, "\"auto\"") {
            Auto::Passed
        } else {
            Auto::Refused
        }
    }

    /// Whether a value for a key changes nothing about the verdict; where the section is refused without the key
    /// already, whether nothing is said about the key itself.
    fn takes(&self, path: &str, value: &str) -> bool {
        let judge = |config: &Json| {
            let document = parse_json(&config.to_string()).ok()?;
            Some(resolve(document.root(), Circumstances::new(self.version, 1)))
        };
        let Some(with) = judge(&config(path, Some(value))) else { return false };
        if with.is_accepted() {
            return true;
        }
        let is_fine_without = judge(&config(path, None)).is_some_and(|it| it.is_accepted());
        let below = |found: &str| found == path || found.starts_with(&format!("{path}."));
        !is_fine_without && !with.problems.iter().any(|problem| below(&problem.path.to_string()))
    }
}

/// A config that says nothing but how large the batch is, and one key, or only the sections around it.
fn config(path: &str, value: Option<&str>) -> Json {
    let mut config = match path {
        "train_micro_batch_size_per_gpu" => json!({ "train_batch_size": 24 }),
        _ => json!({ "train_micro_batch_size_per_gpu": 1 }),
    };
    let (sections, name) = path.rsplit_once('.').unwrap_or(("", path));
    let mut place = &mut config;
    for section in sections.split('.').filter(|section| !section.is_empty()) {
        place = &mut place[section];
        *place = json!({});
    }
    if let Some(value) = value.and_then(|value| serde_json::from_str(value).ok()) {
        place[name] = value;
    }
    config
}
