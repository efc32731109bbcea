//! Types of the engine as JSON Schema: what a value may be, and what an editor should not suggest.

use serde_json::{Map, Value as Json, json};
use zeropilot_config::schema::{Bounds, Dialect, FieldType};

use super::probe::{Auto, Kinds, Taken};

/// Text that pydantic takes for a switch.
const SWITCH_WORDS: [&str; 12] =
    ["0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"];
const WHOLE_NUMBER: &str = r"^\s*[+-]?[0-9_]+(\.0+)?\s*$";
const NUMBER: &str = r"^\s*[+-]?([0-9_]+\.?[0-9_]*|\.[0-9_]+|[iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])([eE][+-]?[0-9_]+)?\s*$";

/// Shared pieces. A boolean that is only converted is written as what it is not: editors then do not suggest it.
pub(super) fn definitions() -> Json {
    json!({
        "also_boolean": {
            "$comment": "accepted and converted, but editors do not suggest it",
            "not": { "type": ["null", "number", "string", "array", "object"] },
        },
    })
}

/// What a value may be, each with the kinds it covers.
#[derive(Default)]
pub(super) struct Alternatives(Vec<(Kinds, Json)>);

impl Alternatives {
    pub(super) fn add(&mut self, kinds: Kinds, schema: Json) {
        self.0.push((kinds, schema));
    }

    /// One of some words, in the spelling that is suggested or any other case.
    pub(super) fn words<'w>(&mut self, words: impl Iterator<Item = &'w str>) {
        let words: Vec<&str> = words.collect();
        self.add(Kinds::STRING, json!({ "enum": words }));
        self.add(Kinds::STRING, json!({ "type": "string", "pattern": any_case(&words) }));
    }

    /// The words it names, which a trial must know.
    pub(super) fn named(&self) -> Vec<String> {
        let enums = self.0.iter().filter_map(|(_, schema)| schema["enum"].as_array());
        enums.flatten().map(Json::to_string).collect()
    }

    fn covered(&self) -> Kinds {
        self.0.iter().fold(Kinds::default(), |all, (kinds, _)| all.with(*kinds))
    }

    /// As far as they are taken, with whatever else is taken.
    pub(super) fn finish(mut self, taken: &Taken, auto: Auto) -> Map<String, Json> {
        // A section can ask for keys that no trial names; it is taken all the same.
        let kinds = match self.covered().meets(Kinds::OBJECT) {
            true => taken.kinds.with(Kinds::OBJECT),
            false => taken.kinds,
        };
        self.0.retain(|(own, _)| own.meets(kinds));
        let is_typed = !self.0.is_empty();
        let others = kinds.without(self.covered());
        if others.is_all() {
            let suggested =
                (auto == Auto::Filled).then(|| ("examples".to_owned(), json!(["auto"])));
            return suggested.into_iter().collect();
        }
        if others != Kinds::default() {
            self.add(others, other_kinds(others, is_typed, taken.positive));
        }
        match auto {
            Auto::Filled => self.add(Kinds::STRING, json!({ "const": "auto" })),
            // A pattern is not suggested, a constant is.
            Auto::Passed if !self.takes_any_text() => {
                self.add(Kinds::STRING, json!({ "type": "string", "pattern": "^auto$" }));
            }
            Auto::Passed | Auto::Refused => {}
        }
        let mut schemas: Vec<Json> = self.0.into_iter().map(|(_, schema)| schema).collect();
        match (schemas.len(), schemas.pop()) {
            (1, Some(Json::Object(only))) => only,
            (_, Some(last)) => {
                schemas.push(last);
                Map::from_iter([("anyOf".to_owned(), Json::Array(schemas))])
            }
            (_, None) => Map::from_iter([("not".to_owned(), json!({}))]),
        }
    }

    fn takes_any_text(&self) -> bool {
        self.0.iter().any(|(_, schema)| {
            let kind = &schema["type"];
            let is_text = kind == "string"
                || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"));
            is_text && schema.get("pattern").is_none()
        })
    }
}

/// Kinds without a type of their own. Beside a type they are conversions, which nobody should be led to.
fn other_kinds(kinds: Kinds, is_typed: bool, positive: bool) -> Json {
    if is_typed && kinds == Kinds::BOOLEAN {
        return json!({ "$ref": "#/definitions/also_boolean" });
    }
    let mut schema = json!({ "type": kinds.names() });
    if positive && kinds.meets(Kinds::NUMBER) {
        schema["exclusiveMinimum"] = 0.into();
    }
    schema
}

/// The alternatives of a type. `nested` writes the section behind a model's name.
pub(super) fn values(
    kind: &FieldType,
    bounds: &Bounds,
    dialect: Dialect,
    nested: &dyn Fn(&str) -> Option<Json>,
) -> Alternatives {
    let mut found = Alternatives::default();
    let also_boolean = || json!({ "$ref": "#/definitions/also_boolean" });
    match kind {
        FieldType::Bool => {
            found.add(Kinds::BOOLEAN, json!({ "type": "boolean" }));
            let zero_or_one = json!({ "type": "integer", "minimum": 0, "maximum": 1 });
            found.add(Kinds::NUMBER, zero_or_one);
            let pattern = any_case(&SWITCH_WORDS);
            found.add(Kinds::STRING, json!({ "type": "string", "pattern": pattern }));
        }
        FieldType::Int => {
            found.add(Kinds::NUMBER, whole(bounds, dialect));
            found.add(Kinds::BOOLEAN, also_boolean());
            found.add(Kinds::STRING, json!({ "type": "string", "pattern": WHOLE_NUMBER }));
        }
        FieldType::Float => {
            found.add(Kinds::NUMBER, bounded(json!({ "type": "number" }), bounds));
            found.add(Kinds::BOOLEAN, also_boolean());
            found.add(Kinds::STRING, json!({ "type": "string", "pattern": NUMBER }));
        }
        FieldType::IntEnum(values) => {
            found.add(Kinds::NUMBER, json!({ "enum": values }));
            found.add(Kinds::BOOLEAN, also_boolean());
            found.add(Kinds::STRING, json!({ "type": "string", "pattern": WHOLE_NUMBER }));
        }
        FieldType::StrEnum(values) | FieldType::Literal(values) => {
            found.add(Kinds::STRING, json!({ "enum": values }));
        }
        FieldType::Str | FieldType::Path => found.add(Kinds::STRING, json!({ "type": "string" })),
        FieldType::Optional(inner) => {
            found = values(inner, bounds, dialect, nested);
            found.add(Kinds::NULL, json!({ "type": "null" }));
        }
        FieldType::Union(kinds) => {
            for kind in kinds {
                found.0.extend(values(kind, bounds, dialect, nested).0);
            }
        }
        FieldType::List(inner) => {
            let items = values(inner, &Bounds::default(), dialect, nested).0;
            let items: Vec<Json> = items.into_iter().map(|(_, schema)| schema).collect();
            let items = if items.is_empty() { json!({}) } else { json!({ "anyOf": items }) };
            found.add(Kinds::ARRAY, json!({ "type": "array", "items": items }));
        }
        FieldType::Tuple => found.add(Kinds::ARRAY, json!({ "type": "array" })),
        FieldType::Dict => found.add(Kinds::OBJECT, json!({ "type": "object" })),
        FieldType::Model(name) => {
            found.add(Kinds::OBJECT, nested(name).unwrap_or_else(|| json!({ "type": "object" })));
        }
        FieldType::Any | FieldType::Dtype => {}
    }
    found
}

/// A whole number. pydantic 1 cuts fractions off before it looks at the limits.
fn whole(bounds: &Bounds, dialect: Dialect) -> Json {
    if dialect == Dialect::Pydantic2 {
        return bounded(json!({ "type": "integer" }), bounds);
    }
    let cut = Bounds {
        gt: bounds
            .ge
            .map(|limit| if limit > 0.0 { limit.ceil() - f64::EPSILON } else { limit - 1.0 }),
        ge: bounds.gt.map(|limit| if limit < 0.0 { limit } else { limit.floor() + 1.0 }),
        lt: bounds.le.map(|limit| limit + 1.0),
        le: bounds.lt,
    };
    bounded(json!({ "type": "number" }), &cut)
}

fn bounded(mut schema: Json, bounds: &Bounds) -> Json {
    let limits = [
        ("exclusiveMinimum", bounds.gt),
        ("minimum", bounds.ge),
        ("exclusiveMaximum", bounds.lt),
        ("maximum", bounds.le),
    ];
    for (name, limit) in limits {
        if let Some(limit) = limit {
            schema[name] = limit.into();
        }
    }
    schema
}

/// A pattern for words in any case.
fn any_case(words: &[&str]) -> String {
    let spelt = |word: &&str| -> String {
        word.chars()
            .map(|letter| match (letter.to_lowercase().next(), letter.to_uppercase().next()) {
                (Some(lower), Some(upper)) if lower != upper => format!("[{lower}{upper}]"),
                _ if letter.is_alphanumeric() || letter == '_' => letter.to_string(),
                _ => format!("\\{letter}"),
            })
            .collect()
    };
    format!("^({})$", words.iter().map(spelt).collect::<Vec<_>>().join("|"))
}
