//! What the real engine did with a key, and what the answer to a user says about it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use zeropilot_ask::memory::WrittenConfig;
use zeropilot_ask::{Job, Machines, MemoryProblem, MemoryRequest, Training};
use zeropilot_job::NotModelled;
use zeropilot_model::{Model, Weights};
use zeropilot_step::memory::Prediction;

use crate::calls::difference;
use crate::public_path::between;

/// A prediction this near, in percent of the highest point of its rank, follows.
pub(crate) const NEAR: f64 = 2.0;
const GPUS: &str = "2x80GB";

pub(crate) fn knowledge<T: for<'de> Deserialize<'de>>(file: &str) -> T {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/");
    let text = std::fs::read_to_string(format!("{path}{file}")).expect("a file");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// `knowledge/effects/measured.json`.
#[derive(Deserialize)]
pub(crate) struct Measured {
    pub(crate) versions: BTreeMap<String, String>,
    recipe: Value,
    pub(crate) models: BTreeMap<String, Value>,
    baselines: Vec<Baseline>,
    pub(crate) cases: Vec<Case>,
    /// On baselines that lack what the key needs.
    pub(crate) without_needs: Vec<Case>,
}

/// A model, a stage and what has to be set so that a key is read at all.
#[derive(Deserialize)]
struct Baseline {
    name: String,
    model: String,
    config: Value,
    #[serde(flatten)]
    run: Value,
}

/// A baseline with one key set.
#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) on: String,
    pub(crate) key: String,
    pub(crate) value: Value,
    #[serde(default)]
    pub(crate) refused: Option<String>,
    #[serde(default)]
    same: bool,
    #[serde(flatten)]
    run: Value,
}

/// What became of a case.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// DeepSpeed stops; whether the answer refuses it too, or names it.
    Refused { is_said: bool },
    /// Neither the run nor the prediction changes.
    NoEffect,
    /// The prediction changes by the same bytes and calls.
    Exact,
    /// The same calls, and bytes that are off by so many percent.
    Within(f64),
    /// The prediction does not follow, and the answer says so; the run needs so many percent more than predicted.
    Named { notes: Vec<NotModelled>, more: f64 },
    /// The prediction does not follow, and the answer does not say so.
    Silent(String),
}

/// A prediction beside a run: by rank and what is compared our bytes less the engine's and the rank's highest point, the
/// first call that differs, and what the answer says it does not follow.
struct Beside {
    errors: BTreeMap<(usize, String), (i64, i64)>,
    call: Option<String>,
    notes: Vec<NotModelled>,
    /// The highest point of a step of the first rank less the predicted one, in percent of the latter.
    more: f64,
}

impl Measured {
    pub(crate) fn verdicts(&self) -> Vec<(&Case, Verdict)> {
        self.judged(&self.cases)
    }

    pub(crate) fn judged<'a>(&self, cases: &'a [Case]) -> Vec<(&'a Case, Verdict)> {
        let baselines: BTreeMap<&str, (&Baseline, Beside)> = self
            .baselines
            .iter()
            .map(|on| (on.name.as_str(), (on, self.beside(&on.model, &on.config, &on.run))))
            .collect();
        let judged = |case: &'a Case| {
            let (on, base) = &baselines[case.on.as_str()];
            (case, self.verdict(case, on, base))
        };
        cases.iter().map(judged).collect()
    }

    fn verdict(&self, case: &Case, on: &Baseline, base: &Beside) -> Verdict {
        let mut config = on.config.clone();
        set(&mut config, &case.key, case.value.clone());
        if case.refused.is_some() {
            let job = ask(&self.models[&on.model], &config, GPUS, self.tokens());
            let is_said = job.map_or(true, |job| !job.provenance.not_modelled.is_empty());
            return Verdict::Refused { is_said };
        }
        let run = if case.same { &on.run } else { &case.run };
        // Calls while the engine starts are in the file, but no prediction has them.
        let is_same = run["ranks"] == on.run["ranks"]
            && run["traffic"]["steady_step"] == on.run["traffic"]["steady_step"];
        let beside = self.beside(&on.model, &config, run);
        let moved = beside.errors.iter().map(|(what, (error, highest))| {
            let by = error - base.errors[what].0;
            (by.abs() as f64 / *highest as f64 * 100.0, by, what)
        });
        let worst = moved.max_by(|a, b| a.0.total_cmp(&b.0)).expect("something is compared");
        match beside.call {
            None if worst.0 == 0.0 && is_same => Verdict::NoEffect,
            None if worst.0 == 0.0 => Verdict::Exact,
            _ if !beside.notes.is_empty() => {
                Verdict::Named { notes: beside.notes, more: beside.more - base.more }
            }
            None if worst.0 <= NEAR => Verdict::Within(worst.0),
            call => Verdict::Silent(format!("{worst:?} {call:?}")),
        }
    }

    fn tokens(&self) -> u64 {
        self.recipe["seq"].as_u64().expect("tokens")
    }

    fn beside(&self, model: &str, config: &Value, run: &Value) -> Beside {
        let job = ask(&self.models[model], config, GPUS, self.tokens());
        let job = job.unwrap_or_else(|problem| panic!("{config}: {problem:?}"));
        let question = job.question();
        let mut errors = BTreeMap::new();
        let mut more = 0.0;
        for (index, rank) in run["ranks"].as_array().expect("ranks").iter().enumerate() {
            let ours = question.tensors(index as u64).expect("a prediction");
            let peaks = rank["peak"].as_object().expect("peaks").values();
            let highest = peaks.filter_map(Value::as_i64).max().expect("a peak");
            let beside = (ours.buffers + ours.batch).0 as i64;
            let misc = beside - rank["misc"].as_i64().expect("bytes");
            let all = between(&ours, rank).into_iter().map(|(what, (error, _))| (what, error));
            if index == 0 {
                more = excess(&ours, rank);
            }
            for (what, error) in all.chain([("beside".to_owned(), misc)]) {
                errors.insert((index, what), (error, highest));
            }
        }
        let program = question.step_program(&question.workload().expect("a workload"));
        let mut run = run.clone();
        // Ranks that did not all send the same are told one by one.
        if let Value::Array(ranks) = &run["traffic"] {
            run["traffic"] = ranks[0].clone();
        }
        // Older files have broadcasts of a second step, which are left out there.
        let is_broadcast = run["traffic"]["steady_step"].to_string().contains("broadcast");
        let call = difference(&run, &program).0.or(is_broadcast.then(|| "broadcast".to_owned()));
        Beside { errors, call, notes: job.provenance.not_modelled, more }
    }
}

/// How many percent a step needs more than predicted.
fn excess(ours: &Prediction, rank: &Value) -> f64 {
    let phases = ["forward", "backward", "step"].map(|phase| rank["peak"][phase].as_i64());
    let theirs = phases.into_iter().flatten().max().expect("a peak");
    let passes = ours.micro_steps.iter().flat_map(|step| [&step.forward, &step.backward]);
    let peaks = passes.chain([&ours.step]).map(|peak| peak.total.0);
    let ours = peaks.max().expect("a peak") as f64;
    (theirs as f64 / ours - 1.0) * 100.0
}

/// The question that a user asks.
pub(crate) fn ask(
    model: &Value,
    config: &Value,
    gpus: &str,
    tokens: u64,
) -> Result<Job, MemoryProblem> {
    let bytes = config.to_string().into_bytes();
    let request = MemoryRequest {
        machines: Machines { gpus: Some(gpus.to_owned()), ..Machines::default() },
        config: Some(WrittenConfig { name: "ds.json".to_owned(), bytes }),
        training: Training { seq_len: Some(tokens), ..Training::default() },
        ..MemoryRequest::default()
    };
    let built = Model::from_config_with(&model.to_string(), Weights::Fresh).expect("a model");
    Job::of("model", built, &request)
}

/// Sets a key below its sections.
pub(crate) fn set(config: &mut Value, key: &str, value: Value) {
    let place = key.split('.').fold(config, |section, name| &mut section[name]);
    *place = value;
}
