//! The diagnosis for programs.

use serde::Serialize;
use serde_json::Value;
use zeropilot_diagnose::{Cause, Certainty, Diagnosis, Gap, Memory, Object, Phase};
use zeropilot_text::Language;

use super::{LogReport, nothing, prediction, steps, words};
use crate::json::value;
use crate::memory::phase;

/// The version of this shape.
const SHAPE: u32 = 1;

/// Why a run ran out of memory; `cause` is null if the log has no out-of-memory message.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct LogDiagnosis<'a> {
    shape: u32,
    log: &'a str,
    cause: Option<Cause>,
    certainty: Option<Certainty>,
    memory: Option<Memory>,
    phase: Option<Phase>,
    object: Option<Object>,
    summary: String,
    rank: Option<u32>,
    ranks: &'a [u32],
    messages: u64,
    numbers: Option<ShortageNumbers<'a>>,
    evidence: Vec<EvidenceLine<'a>>,
    steps: Vec<ChangeFirst>,
    gaps: Vec<UnknownFact>,
    prediction: Option<ShortagePrediction>,
}

/// The numbers of the message, in bytes. `cached`, `process` and `others` may follow from the others.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShortageNumbers<'a> {
    device: Option<&'a str>,
    requested: Option<u64>,
    free: Option<u64>,
    capacity: Option<u64>,
    allocated: Option<u64>,
    cached: Option<u64>,
    process: Option<u64>,
    others: Option<u64>,
}

/// A line of the log.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct EvidenceLine<'a> {
    line: u64,
    text: &'a str,
}

/// A change, with its key, argument, variable or command.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ChangeFirst {
    setting: &'static str,
    text: &'static str,
}

/// Something that the log does not show.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct UnknownFact {
    name: Gap,
    text: &'static str,
}

/// zeropilot's prediction for the same job. `measured` is the sum of live tensors and the request.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ShortagePrediction {
    phase: &'static str,
    tensors: u64,
    device: u64,
    measured: Option<u64>,
    larger: Option<&'static str>,
    terms: Vec<PredictedPart>,
}

/// A part of the predicted tensors.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PredictedPart {
    part: String,
    bytes: u64,
}

/// The report as one object. Keys are added, never changed.
pub fn json(report: &LogReport<'_>, language: Language) -> Value {
    let Some(diagnosis) = report.diagnosis else {
        return value(&LogDiagnosis {
            shape: SHAPE,
            log: report.name,
            summary: nothing(report.name, language),
            ..LogDiagnosis::default()
        });
    };
    let prediction = report.predicted.map(|predicted| predicted_of(diagnosis, predicted));
    value(&LogDiagnosis {
        shape: SHAPE,
        log: report.name,
        cause: Some(diagnosis.cause),
        certainty: Some(diagnosis.certainty),
        memory: Some(diagnosis.memory),
        phase: diagnosis.phase,
        object: diagnosis.object,
        summary: words::verdict(diagnosis, language),
        rank: diagnosis.rank,
        ranks: &diagnosis.ranks,
        messages: diagnosis.messages,
        numbers: numbers(diagnosis),
        evidence: diagnosis
            .evidence
            .iter()
            .map(|line| EvidenceLine { line: line.number, text: &line.text })
            .collect(),
        steps: steps::steps(diagnosis, report.predicted.is_some())
            .iter()
            .map(|step| ChangeFirst { setting: step.setting, text: step.text.get(language) })
            .collect(),
        gaps: diagnosis
            .gaps
            .iter()
            .map(|gap| UnknownFact { name: *gap, text: words::gap(*gap).get(language) })
            .collect(),
        prediction,
    })
}

fn numbers(diagnosis: &Diagnosis) -> Option<ShortageNumbers<'_>> {
    let message = &diagnosis.message;
    message.has_numbers().then(|| ShortageNumbers {
        device: message.device.as_deref(),
        requested: message.tried,
        free: message.free,
        capacity: message.capacity,
        allocated: message.allocated,
        cached: message.cached(),
        process: message.process(),
        others: message.others(),
    })
}

fn predicted_of(diagnosis: &Diagnosis, predicted: &zeropilot_ask::Memory) -> ShortagePrediction {
    let compared = prediction::compared(diagnosis, predicted);
    let part = |term: zeropilot_record::Term| PredictedPart { part: term.name, bytes: term.bytes };
    ShortagePrediction {
        phase: phase::name(compared.phase),
        tensors: compared.tensors,
        device: compared.device,
        measured: compared.measured,
        larger: compared.larger,
        terms: compared.terms.into_iter().map(part).collect(),
    }
}
