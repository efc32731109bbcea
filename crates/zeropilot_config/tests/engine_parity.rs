//! The same verdict and the same resolved values as the real engine, version by version.
//!
//! The other side is `oracle/verdict_server.py`. `ZEROPILOT_PARITY_CASES` sets how many generated
//! configs per version, `ZEROPILOT_PARITY_VERSION` picks one version; the rest of the environment is
//! described in `zeropilot_oracle`.

#[path = "engine_parity/generator.rs"]
mod generator;
#[path = "engine_parity/tree.rs"]
mod tree;

use std::path::Path;

use generator::Generator;
use serde_json::json;
use tree::Tree;
use zeropilot_config::python::{PyValue, same};
use zeropilot_config::resolve::{Accelerator, Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{decode, parse_hjson, parse_json};
use zeropilot_oracle::{Oracle, base64};

/// What we say of a config file.
enum Ours {
    Refused(String),
    Accepted(PyValue),
}

fn ours(data: &[u8], version: EngineVersion, world_size: usize) -> Ours {
    let document = match decode(data).and_then(parse_hjson) {
        Ok(document) => document,
        Err(error) => return Ours::Refused(error.to_string()),
    };
    if let Some(duplicate) = document.duplicate_keys().first() {
        return Ours::Refused(format!("{duplicate:?}"));
    }
    let mut circumstances = Circumstances::new(version, world_size);
    circumstances.accelerator = Accelerator::Cpu;
    let resolution = resolve(document.root(), circumstances);
    match resolution.resolved {
        Some(resolved) => Ours::Accepted(resolved.attributes()),
        None => Ours::Refused(format!("{:?}", resolution.problems)),
    }
}

/// Where two resolved configs differ, or `None`.
fn difference(path: &str, ours: &PyValue, engine: &PyValue) -> Option<String> {
    if let (PyValue::Dict(left), PyValue::Dict(right)) = (ours, engine) {
        for (key, value) in right {
            let path = format!("{path}.{key}");
            match ours.get(key) {
                None => return Some(format!("{path}: ours lacks it, engine has {value:?}")),
                Some(own) => {
                    if let Some(found) = difference(&path, own, value) {
                        return Some(found);
                    }
                }
            }
        }
        return left
            .iter()
            .find(|(key, _)| engine.get(key).is_none())
            .map(|(key, value)| format!("{path}.{key}: ours has {value:?}, engine lacks it"));
    }
    (!same(ours, engine)).then(|| format!("{path}: ours {ours:?}, engine {engine:?}"))
}

/// How our answer disagrees with the engine's, or `None`.
fn disagreement(ours: &Ours, engine: &PyValue) -> Option<String> {
    let accepted = engine.get("accept") == Some(&PyValue::Bool(true));
    match (ours, accepted) {
        (Ours::Refused(_), false) => None,
        (Ours::Refused(reason), true) => Some(format!("engine accepts, we refuse: {reason}")),
        (Ours::Accepted(_), false) => {
            Some(format!("engine refuses: {:?} {:?}", engine.get("error"), engine.get("message")))
        }
        (Ours::Accepted(values), true) => {
            difference("", values, engine.get("resolved").unwrap_or(&PyValue::None))
        }
    }
}

/// A version of the engine that judges configs.
struct Engine(Oracle);

impl Engine {
    fn start(home: &Path, version: EngineVersion) -> Self {
        Self(Oracle::start_with_engine(home, "verdict_server.py", version.name()))
    }

    /// The verdicts on configs at world sizes, in order.
    fn judge<'a>(&mut self, configs: impl Iterator<Item = (&'a [u8], usize)>) -> Vec<PyValue> {
        let question =
            |(data, world_size)| json!({"text_b64": base64(data), "world_size": world_size});
        let verdict = |line: &String| PyValue::from(parse_json(line).expect("JSON").root());
        self.0.ask(configs.map(question).collect()).iter().map(verdict).collect()
    }
}

#[test]
fn every_public_config_gets_the_engines_verdict_and_values() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let Some(files) = zeropilot_oracle::corpus() else {
        return zeropilot_oracle::missing("ZEROPILOT_CORPUS");
    };
    let mut wrong = Vec::new();
    let mut compared = 0;
    for version in EngineVersion::all() {
        let mut engine = Engine::start(&home, version);
        for world_size in [1, 3, 8, 64] {
            let verdicts = engine.judge(files.iter().map(|file| (&*file.data, world_size)));
            for (file, verdict) in files.iter().zip(verdicts) {
                compared += 1;
                if let Some(how) = disagreement(&ours(&file.data, version, world_size), &verdict) {
                    let name = &file.name;
                    wrong.push(format!("{name} at {world_size} ranks on {version}: {how}"));
                }
            }
        }
    }
    println!("{compared} verdicts compared, {} disagree", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {compared}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(25)].join("\n")
    );
}

/// How many generated configs are compared with a version; CI takes fewer of the older ones.
fn cases(version: EngineVersion) -> usize {
    let default = if version == EngineVersion::NEWEST { 10_000 } else { 2_000 };
    zeropilot_oracle::setting("ZEROPILOT_PARITY_CASES").unwrap_or(default)
}

const WORLD_SIZES: [usize; 5] = [1, 2, 3, 8, 64];

#[test]
fn generated_configs_get_the_engines_verdict_and_values() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let files = zeropilot_oracle::corpus().unwrap_or_default();
    let seed = zeropilot_oracle::seed();
    let mut all = Vec::new();
    for version in EngineVersion::all() {
        let only = std::env::var("ZEROPILOT_PARITY_VERSION");
        if only.is_ok_and(|only| only != version.name()) {
            continue;
        }
        let mut engine = Engine::start(&home, version);
        let mut generator = Generator::new(seed, &files);
        let mut found = Vec::new();
        let mut accepted = 0;
        let total = cases(version);
        for _ in 0..total.div_ceil(1000) {
            let batch: Vec<(String, usize)> = (0..1000)
                .map(|_| (generator.config(version.schema()), *generator.random.pick(&WORLD_SIZES)))
                .collect();
            let verdicts =
                engine.judge(batch.iter().map(|(text, world)| (text.as_bytes(), *world)));
            for ((text, world), verdict) in batch.iter().zip(verdicts) {
                accepted += usize::from(verdict.get("accept") == Some(&PyValue::Bool(true)));
                if disagreement(&ours(text.as_bytes(), version, *world), &verdict).is_some() {
                    found.push(shrink(&mut engine, text, version, *world));
                }
            }
            if found.len() >= 12 {
                break;
            }
        }
        println!("{version}: {total} configs, {accepted} accepted, {} disagreements", found.len());
        all.extend(found.into_iter().map(|how| format!("{version}: {how}")));
    }
    assert!(all.is_empty(), "seed {seed}:\n{}", all.join("\n"));
}

/// Removes members as long as the disagreement stays, and says what is left.
fn shrink(engine: &mut Engine, text: &str, version: EngineVersion, world: usize) -> String {
    let document = parse_hjson(text).expect("a generated config parses");
    let mut tree = Tree::from(&PyValue::from(document.root()));
    let mut differs = |tree: &Tree| {
        let text = tree.text();
        let verdicts = engine.judge(std::iter::once((text.as_bytes(), world)));
        disagreement(&ours(text.as_bytes(), version, world), &verdicts[0])
    };
    let mut how = differs(&tree).unwrap_or_else(|| "lost while shrinking".to_owned());
    let mut member = 0;
    while member < tree.count() {
        let mut smaller = tree.clone();
        smaller.delete(member);
        match differs(&smaller) {
            Some(found) => (tree, how) = (smaller, found),
            None => member += 1,
        }
    }
    format!("{} at {world} ranks: {how}", tree.text())
}
