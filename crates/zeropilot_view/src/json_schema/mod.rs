//! A JSON Schema of the config language of one engine version, for editors that know JSON but not us.
//!
//! The rule it keeps: **what it refuses, the engine refuses.** What the engine takes is allowed even where nobody
//! should write it (`"stage": "3"`), only not suggested; what hangs on several keys or on the number of ranks it cannot
//! say, and `check` does. Draft 7 is written because editors read it best: the JSON service behind VS Code, Neovim's and
//! Helix's `jsonls` supports it fully and later drafts in part, and JetBrains reads it since 2018.
//!
//! Types, bounds and choices come from the extracted schema, words from the key texts; which kinds of value a key takes
//! at all is found by asking the resolver ([`probe`]).

mod probe;
mod values;
mod words;

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};
use zeropilot_config::constructors::Constructors;
use zeropilot_config::keys;
use zeropilot_config::schema::{EngineVersion, Field, Located, Model, RawKey, Schema};
use zeropilot_text::Language;

use probe::{Kinds, Probe};
use values::{Alternatives, values};

/// Writes the schema of an engine version, its words in these languages.
pub fn json_schema(version: EngineVersion, languages: &[Language]) -> Json {
    Writer { version, schema: version.schema(), probe: Probe::new(version), languages }.root()
}

struct Writer<'a> {
    version: EngineVersion,
    schema: &'static Schema,
    probe: Probe,
    languages: &'a [Language],
}

impl Writer<'_> {
    fn root(&self) -> Json {
        let mut names: BTreeSet<&str> = self.schema.top_level_keys().collect();
        let removed = self.schema.rejected_when_present.iter().map(|removed| removed.path.as_str());
        names.extend(removed.filter(|path| !path.contains('.')));
        let properties: Map<String, Json> =
            names.into_iter().map(|name| (name.to_owned(), self.key(name))).collect();
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": format!("urn:zeropilot:deepspeed-config:{}", self.version),
            "title": format!("DeepSpeed {} config", self.version),
            "description": words::about(self.version, self.languages),
            "type": "object",
            "properties": properties,
            "additionalProperties": true,
            "definitions": values::definitions(),
        })
    }

    /// The schema of a key, with its words.
    fn key(&self, path: &str) -> Json {
        if let Some(removed) = self.schema.removed(path) {
            return words::refused(self.version, &removed.message, self.languages);
        }
        let mut written = match self.schema.locate(path) {
            Some(Located::Section(model)) => self.section(path, model),
            Some(Located::Field(field)) => self.field(path, field),
            Some(Located::Raw(key)) => self.raw(path, key),
            Some(Located::HandedOn) | None => Map::new(),
        };
        words::describe(&mut written, path, self.version, self.languages);
        Json::Object(written)
    }

    fn section(&self, path: &str, model: &Model) -> Map<String, Json> {
        let mut alternatives = Alternatives::default();
        alternatives.add(Kinds::OBJECT, self.model(path, model));
        self.finished(path, alternatives)
    }

    fn field(&self, path: &str, field: &Field) -> Map<String, Json> {
        let nested = |name: &str| {
            let model = self.schema.models.get(name)?;
            Some(self.model(path, model))
        };
        let alternatives = values(&field.kind, &field.bounds, self.schema.dialect, &nested);
        self.finished(path, alternatives)
    }

    /// An object whose keys the engine knows and of which it refuses all others.
    fn model(&self, path: &str, model: &Model) -> Json {
        let mut properties = Map::new();
        for field in &model.fields {
            let key = self.key(&format!("{path}.{}", field.key()));
            if field.alias.is_some() {
                let mut other = key.clone();
                other["doNotSuggest"] = true.into();
                properties.insert(field.name.clone(), other);
            }
            properties.insert(field.key().to_owned(), key);
        }
        let unknown = words::unknown_key(self.version, self.languages);
        if model.drops_auto {
            // The base class of all models keeps the one to itself and trips over the other.
            properties.insert("strict".to_owned(), json!({ "doNotSuggest": true }));
            let refused = json!({ "not": {}, "errorMessage": unknown, "doNotSuggest": true });
            properties.insert("self".to_owned(), refused);
        }
        let additional = match model.drops_auto {
            true => json!({ "const": "auto", "errorMessage": unknown }),
            false => json!(false),
        };
        json!({ "type": "object", "properties": properties, "additionalProperties": additional })
    }

    /// A key read by hand: a section of such keys, one of some words, or whatever the resolver takes.
    fn raw(&self, path: &str, key: &RawKey) -> Map<String, Json> {
        let mut alternatives = Alternatives::default();
        let members = self.members(path);
        if !members.is_empty() {
            let properties: Map<String, Json> = members
                .iter()
                .map(|name| (name.clone(), self.key(&format!("{path}.{name}"))))
                .collect();
            alternatives.add(Kinds::OBJECT, json!({ "type": "object", "properties": properties }));
        } else if let Some(choices) = &key.choices {
            alternatives.words(choices.keys().map(String::as_str));
        }
        let mut written = self.finished(path, alternatives);
        let constructors = Constructors::of(self.version);
        match path {
            "optimizer.type" => {
                written.insert("examples".to_owned(), json!(constructors.deepspeed_optimizers));
            }
            "scheduler.type" => {
                let names: Vec<&String> = constructors.schedulers.keys().collect();
                written.insert("examples".to_owned(), json!(names));
            }
            _ => {}
        }
        written
    }

    /// Names of the keys directly in a section read by hand, those that end the run among them.
    fn members(&self, path: &str) -> BTreeSet<String> {
        let mut names = keys::members(self.schema, path);
        let refused = self.schema.rejected_when_present.iter();
        names.extend(refused.filter_map(|removed| {
            let name = removed.path.strip_prefix(path)?.strip_prefix('.')?;
            (!name.contains('.')).then(|| name.to_owned())
        }));
        names
    }

    /// The alternatives as far as the resolver takes them, and whatever else it takes.
    fn finished(&self, path: &str, alternatives: Alternatives) -> Map<String, Json> {
        let taken = self.probe.kinds(path, &alternatives.named());
        alternatives.finish(&taken, self.probe.auto(path))
    }
}
