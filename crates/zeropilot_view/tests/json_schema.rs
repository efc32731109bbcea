//! The JSON Schema of the config language: it is one, it refuses nothing that the engine takes, and what it lets pass
//! although the engine refuses is known by name.

#[path = "../../zeropilot_config/tests/engine_parity/generator.rs"]
mod generator;
#[path = "../../zeropilot_config/tests/engine_parity/tree.rs"]
mod tree;

use std::collections::BTreeMap;

use generator::Generator;
use jsonschema::Validator;
use serde_json::Value as Json;
use zeropilot_config::problem::{Problem, ProblemKind};
use zeropilot_config::python::PyValue;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{Document, decode, parse_hjson};
use zeropilot_lint::{Settings, Verdict, check};
use zeropilot_text::Language;
use zeropilot_view::json_schema;

const BOTH: [Language; 2] = [Language::English, Language::Chinese];

fn validator(version: EngineVersion) -> Validator {
    jsonschema::validator_for(&json_schema(version, &BOTH)).expect("a valid schema")
}

#[test]
fn the_schema_of_every_version_is_a_schema() {
    for version in EngineVersion::all() {
        let schema = json_schema(version, &BOTH);
        if let Err(error) = jsonschema::draft7::meta::validate(&schema) {
            panic!("{version}: {error} at {}", error.instance_path());
        }
    }
}

/// The document as other readers of JSON see it; `None` where they have no such number.
fn as_json(document: &Document) -> Option<Json> {
    let value = PyValue::from(document.root());
    is_common(&value).then(|| serde_json::to_value(&value).ok())?
}

/// Whether all numbers are of the kinds that readers of JSON agree about.
fn is_common(value: &PyValue) -> bool {
    match value {
        PyValue::Int(number) => i64::try_from(number).is_ok(),
        PyValue::Float(number) => number.is_finite(),
        PyValue::List(items) => items.iter().all(is_common),
        PyValue::Dict(items) => items.iter().all(|(_, value)| is_common(value)),
        _ => true,
    }
}

/// What the schema says of a text.
fn objections(validator: &Validator, json: &Json) -> Vec<String> {
    validator.iter_errors(json).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn every_public_config_that_is_accepted_validates() {
    let Some(files) = zeropilot_oracle::corpus() else {
        return zeropilot_oracle::missing("ZEROPILOT_CORPUS");
    };
    let mut wrong = Vec::new();
    let mut accepted = 0;
    for version in EngineVersion::all() {
        let validator = validator(version);
        let settings = Settings { version, ..Settings::default() };
        for file in &files {
            if check(&file.data, &settings).verdict == Verdict::Reject {
                continue;
            }
            let document = parse_hjson(decode(&file.data).expect("accepted")).expect("accepted");
            let Some(json) = as_json(&document) else { continue };
            accepted += 1;
            let name = &file.name;
            let found = objections(&validator, &json);
            wrong.extend(found.iter().map(|how| format!("{name} on {version}: {how}")));
        }
    }
    println!("{accepted} accepted configs, {} objections", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong[..wrong.len().min(20)].join("\n"));
}

/// What a schema cannot say, or says more loosely than the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Beyond {
    /// The batch keys, together and with the number of ranks.
    BatchArithmetic,
    /// Two keys that exclude or need each other.
    BetweenKeys,
    /// One field by two names.
    SpeltTwice,
    /// A section that must name a key. The extracted schema does not say which do.
    MissingKey,
    /// A value of a kind that the key takes, but not this one: code of the engine, not a type, decides.
    Value,
    /// A text or a fraction that a conversion ends up refusing.
    Converted,
}

/// What the schema refuses although the engine takes it, or never looks at it.
fn is_known(objection: &str, json: &Json) -> bool {
    // One section under two names: the engine reads `bf16` and leaves the other alone.
    let twin = objection.starts_with("/bfloat16") && json.get("bf16").is_some();
    // Elastic training computes the batch itself.
    let elastic = json.get("elasticity").is_some()
        && ["/train_batch_size", "/train_micro_batch_size_per_gpu", "/gradient_accumulation_steps"]
            .iter()
            .any(|key| objection.starts_with(key));
    // Python reads numbers in the digits of every script, a portable pattern only in these.
    let digits = json.to_string().chars().any(|c| c.is_numeric() && !c.is_ascii());
    twin || elastic || digits
}

fn beyond(problem: &Problem) -> Beyond {
    match &problem.kind {
        ProblemKind::BatchUndetermined
        | ProblemKind::BatchNotPositive(_)
        | ProblemKind::BatchMismatch(_)
        | ProblemKind::BatchArithmetic
        | ProblemKind::AutoUnfilled
        | ProblemKind::Elasticity(_) => Beyond::BatchArithmetic,
        ProblemKind::BothPrecisions
        | ProblemKind::Conflict(_)
        | ProblemKind::DeprecatedTogether { .. } => Beyond::BetweenKeys,
        ProblemKind::SpeltTwice { .. } => Beyond::SpeltTwice,
        ProblemKind::MissingKey { .. } => Beyond::MissingKey,
        ProblemKind::WrongValue { .. } => Beyond::Value,
        ProblemKind::OutOfBounds(_) => Beyond::Converted,
        kind => panic!("a schema can say this, and does not: {kind:?} at {}", problem.path),
    }
}

#[test]
fn generated_configs_are_refused_only_where_the_engine_refuses() {
    let files = zeropilot_oracle::corpus().unwrap_or_default();
    let seed = zeropilot_oracle::seed();
    let cases = zeropilot_oracle::setting("ZEROPILOT_PARITY_CASES").unwrap_or(4_000);
    let mut wrong = Vec::new();
    for version in EngineVersion::all() {
        let validator = validator(version);
        let mut generator = Generator::new(seed, &files);
        let mut both = [0; 2];
        let mut passed: BTreeMap<Beyond, usize> = BTreeMap::new();
        for _ in 0..cases {
            let text = generator.config(version.schema());
            let document = parse_hjson(&text).expect("a generated config parses");
            if !document.duplicate_keys().is_empty() {
                continue;
            }
            let Some(json) = as_json(&document) else { continue };
            let resolution = resolve(document.root(), Circumstances::new(version, 8));
            let found = objections(&validator, &json);
            match (resolution.is_accepted(), found.as_slice()) {
                (true, []) => both[0] += 1,
                (false, [_, ..]) => both[1] += 1,
                (true, found) => {
                    if let Some(first) = found.iter().find(|how| !is_known(how, &json)) {
                        wrong.push(format!("{version}: {first}\n  {text}"));
                    }
                }
                (false, []) => {
                    *passed.entry(beyond(&resolution.problems[0])).or_default() += 1;
                }
            }
        }
        let [accepted, refused] = both;
        println!(
            "{version}: both accept {accepted}, both refuse {refused}, only the engine refuses {passed:?}"
        );
        // Configs grown from the schema alone are accepted less often than public ones bent out of shape.
        let least = if files.is_empty() { cases / 20 } else { cases / 8 };
        assert!(accepted > least && refused > cases / 4, "the generator shows both sides");
    }
    assert!(
        wrong.is_empty(),
        "seed {seed}, {}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
}
