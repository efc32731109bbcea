//! The report for machines. `tensors` is exact, `device` and `host` are estimates.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use zeropilot_cluster::Cluster;
use zeropilot_model::{Model, Part as ModelPart};
use zeropilot_step::conformal::OwnRuns;
use zeropilot_step::lower::{Fidelity, Images, Recipe, image_tokens};
use zeropilot_step::memory::{Answer, Phase, Prediction, Relief, RolloutMemory, Stretch};
use zeropilot_step::zero::{Engine, Place, Rest};
use zeropilot_text::{Language, tr};
use zeropilot_units::{Bytes, Estimate};

use super::MemoryReport;
use super::human::{self, precision};
use super::part::{Part, parts};
use super::phase;
use super::relief::{self, name, stage_number};
use super::verdict::{Fit, fit, fit_of};
use crate::estimate::Estimate as Bounds;
use crate::json::value;
use crate::{Layout, provenance};

/// The version of this shape.
const SHAPE: u32 = 1;

/// How much memory a job needs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Memory<'a> {
    shape: u32,
    model: &'a str,
    engine: &'static str,
    stage: u8,
    micro_batch: u64,
    sequence_length: u64,
    precision: &'static str,
    precision_assumed: bool,
    gradient_checkpointing: bool,
    world_size: u64,
    nodes: u64,
    gpus_per_node: u64,
    rank: u64,
    task: &'static str,
    parameters: Parameters,
    models: Vec<OtherModel>,
    critic: Option<TrainedBeside>,
    rollout: Option<Rollout>,
    images: Option<ImagesSeen>,
    activations: Activations,
    tensors: Tensors,
    device: DeviceMemory<'a>,
    host: HostMemory,
    savings: Vec<Saving>,
    provenance: provenance::Shape<'a>,
}

/// Parameters of the model, and of each of its parts.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Parameters {
    total: u64,
    trainable: u64,
    parts: Vec<PartSize>,
    quantized: Option<QuantizedSize>,
}

/// Parameters of a quantized base model, and the bytes of all of them with their scales.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct QuantizedSize {
    format: String,
    total: u64,
    bytes: u64,
}

/// Parameters of a part: `vision`, `audio`, `projector` or `language`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PartSize {
    part: &'static str,
    total: u64,
    trainable: u64,
}

/// A frozen model: `reference`, `teacher` or `reward`, with the bytes of its weights between phases.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct OtherModel {
    role: &'static str,
    parameters: u64,
    device: u64,
    host: u64,
}

/// The value model of PPO, which is trained in the same engine as the policy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct TrainedBeside {
    parameters: u64,
}

/// A vLLM engine on the training GPUs: bytes of each GPU during generation and during training, and the parts of its
/// share. From the source code of vLLM, not measured.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rollout {
    generating: u64,
    training: Bounds,
    weights: u64,
    cache: u64,
    cached_tokens: Option<u64>,
    sleeps: bool,
}

impl From<RolloutMemory> for Rollout {
    fn from(rollout: RolloutMemory) -> Self {
        Self {
            generating: rollout.share.0,
            training: rollout.beside_training.into(),
            weights: rollout.weights.0,
            cache: rollout.cache.0,
            cached_tokens: rollout.cached_tokens(),
            sleeps: rollout.sleeps,
        }
    }
}

fn models(report: &MemoryReport<'_>) -> Vec<OtherModel> {
    let frozen = report.question.recipe.task.frozen.iter().zip(&report.answer.on_gpu.frozen);
    frozen
        .map(|(model, held)| OtherModel {
            role: phase::role_name(model.role),
            parameters: model.model.elements().0,
            device: held.rest.at(Place::Device).0,
            host: held.rest.at(Place::Pinned).0 + held.rest.at(Place::Host).0,
        })
        .collect()
}

fn critic(report: &MemoryReport<'_>) -> Option<TrainedBeside> {
    let critic = report.question.recipe.task.critic.as_ref()?;
    Some(TrainedBeside { parameters: critic.model.elements().0 })
}

/// The images of a sequence, and their number of tokens.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ImagesSeen {
    per_sequence: u64,
    width: u64,
    height: u64,
    tokens: u64,
}

fn parameters(model: &Model, recipe: &Recipe) -> Parameters {
    let adapted = recipe.method.lora().and_then(|lora| lora.apply(model).ok());
    let count = model.count();
    let trainable = adapted.as_ref().map_or(count.trainable, |adapted| adapted.count().trainable);
    let adapted_parts = adapted.as_ref().map(Model::parts);
    let part = |part: ModelPart| {
        let of_kind =
            |parts: &Vec<ModelPart>| parts.iter().find(|it| it.kind == part.kind).copied();
        let trained = adapted_parts.as_ref().map_or(Some(part), of_kind);
        PartSize {
            part: part.kind.name(),
            total: part.elements.0,
            trainable: trained.map_or(0, |part| part.trainable.0),
        }
    };
    Parameters {
        total: count.total.0,
        trainable: trainable.0,
        parts: model.parts().into_iter().map(part).collect(),
        quantized: recipe.method.base(model).and_then(|base| {
            let size = base.size(model)?;
            Some(QuantizedSize {
                format: base.format.to_string(),
                total: size.quantized.0,
                bytes: size.stored.total().0,
            })
        }),
    }
}

fn images(model: &Model, recipe: &Recipe) -> Option<ImagesSeen> {
    let tokens = image_tokens(model, recipe)?;
    let Some(Images::PerSequence { count, size, .. }) = recipe.images else { return None };
    Some(ImagesSeen { per_sequence: count, width: size.width, height: size.height, tokens })
}

/// Source of the activations: the model's `own` program, or a `stand_in`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Activations {
    program: &'static str,
    of: Option<&'static str>,
    error: Option<ActivationError>,
}

/// Error of a stand-in's activations for recorded models of its class: 0.1 means 10% too high.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ActivationError {
    low: f64,
    high: f64,
}

/// The exact tensors of the rank.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Tensors {
    after_init: State,
    after_backward: State,
    after_step: State,
    peak: Peaks,
}

/// Tensors between phases, by place and category.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct State {
    device: Parts,
    pinned: Parts,
    host: Parts,
    total: u64,
    misc: u64,
}

/// The peak of each phase.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Peaks {
    init: u64,
    forward: u64,
    backward: u64,
    step: u64,
}

/// Who keeps weights, gradients and optimizer states, as programs read it.
pub(crate) fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::DeepSpeed => "deepspeed",
        Engine::PyTorch => "pytorch",
    }
}

/// Memory that a GPU needs.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DeviceMemory<'a> {
    low: u64,
    expected: u64,
    high: u64,
    allocated: Bounds,
    reserved: Bounds,
    calibration: Calibration,
    capacity: Option<u64>,
    verdict: Option<Fit>,
    at_peak: Parts,
    terms: Vec<MemoryTerm>,
    peak: DevicePeak<'a>,
}

/// Published runs that determine the bounds `low` and `high`, and how many of them are inside and below.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Calibration {
    runs: u64,
    sources: u64,
    inside: u64,
    below: u64,
    own_runs: Option<OwnBounds>,
}

/// The user's own runs on this device, one per job. If `decide` is true, the bounds come from these runs alone;
/// otherwise, the bounds are wide enough to include them.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct OwnBounds {
    runs: u64,
    decide: bool,
}

impl From<OwnRuns> for OwnBounds {
    fn from(OwnRuns { runs, decide }: OwnRuns) -> Self {
        Self { runs, decide }
    }
}

/// GPU memory outside tensors.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct MemoryTerm {
    term: &'static str,
    bytes: Bounds,
}

/// When GPU memory peaks.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DevicePeak<'a> {
    phase: &'static str,
    near: Option<&'a str>,
    init: u64,
    forward: u64,
    backward: u64,
    step: u64,
    others: Parts,
}

/// Memory that a host needs for all its processes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HostMemory {
    per_process: Bounds,
    low: u64,
    expected: u64,
    high: u64,
    processes: u64,
    capacity: Option<u64>,
    verdict: Option<Fit>,
    disk: u64,
}

/// A change, and the bytes it saves on the GPU.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Saving {
    change: &'static str,
    saved: u64,
}

/// Bytes by what they are for.
pub(super) type Parts = BTreeMap<&'static str, u64>;

/// The report as JSON, with the tensors of its rank as CPU ranks were measured to hold them.
pub fn json(report: &MemoryReport<'_>, as_measured: &Prediction) -> Value {
    let (question, answer) = (&report.question, report.answer);
    let ram = question.cluster.host.ram.map(Estimate::exact);
    let layout = question.cluster.gpus.layout;
    let node = answer.node();
    value(&Memory {
        shape: SHAPE,
        model: report.name,
        engine: engine_name(question.recipe.engine),
        stage: stage_number(question.zero.stage),
        micro_batch: question.micro_batch,
        sequence_length: question.recipe.sequence,
        precision: precision(question.resolved.precision()),
        precision_assumed: report.assumed.is_some(),
        gradient_checkpointing: question.recipe.checkpointing,
        world_size: question.cluster.world_size(),
        nodes: layout.nodes,
        gpus_per_node: layout.gpus_per_node,
        rank: answer.rank,
        task: report.task.name(),
        parameters: parameters(question.model, question.recipe),
        models: models(report),
        critic: critic(report),
        rollout: answer.rollout.map(Rollout::from),
        images: images(question.model, question.recipe),
        activations: match answer.fidelity {
            Fidelity::Own => Activations { program: "own", of: None, error: None },
            Fidelity::StandIn(family) => Activations {
                program: "stand_in",
                of: Some(family.name()),
                error: answer
                    .activation_error
                    .map(|error| ActivationError { low: error.low, high: error.high }),
            },
        },
        tensors: tensors(as_measured),
        device: device(report),
        host: HostMemory {
            per_process: answer.host().into(),
            low: node.low().0,
            expected: node.expected().0,
            high: node.high().0,
            processes: answer.ranks_per_host,
            capacity: ram.map(|ram| ram.expected().0),
            verdict: ram.map(|ram| fit(node, ram)),
            disk: answer.disk.total().0 * answer.ranks_per_host,
        },
        savings: report
            .reliefs
            .iter()
            .map(|relief| Saving { change: name(relief.lever), saved: relief.saved.0 })
            .collect(),
        provenance: report.provenance.into(),
    })
}

fn device<'a>(report: &MemoryReport<'a>) -> DeviceMemory<'a> {
    let answer = report.answer;
    let need = answer.device();
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes);
    let slack = MemoryTerm { term: "allocator_slack", bytes: answer.slack.into() };
    let terms = answer.terms.iter();
    let terms = terms.map(|term| MemoryTerm { term: term.kind.name(), bytes: term.bytes.into() });
    let most = |phase| answer.on_gpu.peak(phase).at(Place::Device).0;
    DeviceMemory {
        low: need.low().0,
        expected: need.expected().0,
        high: need.high().0,
        allocated: answer.allocated().into(),
        reserved: answer.reserved().into(),
        calibration: Calibration {
            runs: answer.interval.rows,
            sources: answer.interval.sources,
            inside: answer.interval.inside,
            below: answer.interval.below,
            own_runs: answer.interval.own.map(OwnBounds::from),
        },
        capacity: capacity.map(|capacity| capacity.expected().0),
        verdict: capacity.map(|capacity| fit(need, capacity)),
        at_peak: at_peak(answer),
        terms: terms.chain([slack]).collect(),
        peak: DevicePeak {
            phase: phase::name(answer.fullest),
            near: answer.nearest.as_deref(),
            init: most(Phase::Init),
            forward: most(Phase::Forward),
            backward: most(Phase::Backward),
            step: most(Phase::Step),
            others: answer
                .on_gpu
                .phases()
                .into_iter()
                .filter(|phase| !is_of_model(*phase))
                .map(|phase| (phase::name(phase), most(phase)))
                .collect(),
        },
    }
}

/// Whether a phase is one of those that every job has.
fn is_of_model(phase: Phase) -> bool {
    matches!(phase, Phase::Init | Phase::Forward | Phase::Backward | Phase::Step)
}

/// The tensors on the GPU at its fullest, by part.
pub(super) fn at_peak(answer: &Answer) -> Parts {
    held(answer.at_peak())
}

fn held(rest: &Rest) -> Parts {
    let parts = parts(rest, &[Place::Device]).into_iter();
    parts.map(|(part, bytes)| (part.name(), bytes.0)).collect()
}

/// What is said of the GPU and the host in one row, as [`compare_words`](super::compare_words) says it of every strategy.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RowWords {
    need: String,
    verdict: Option<String>,
    host: String,
}

/// Whether it fits; where the GPU has room and the host has not, it is the host that is named.
pub(super) fn verdict_words(
    answer: &Answer,
    cluster: &Cluster,
    language: Language,
) -> Option<String> {
    let whole = fit_of(answer, cluster)?;
    let device = cluster.capacity().map(|capacity| fit(answer.device(), capacity.bytes));
    let words = whole.words(language);
    Some(match device {
        Some(device) if device < whole => {
            tr!(language, "host: {words}", "主机内存：{words}")
        }
        _ => words.to_owned(),
    })
}

impl RowWords {
    pub(super) fn new(answer: &Answer, cluster: &Cluster, language: Language) -> Self {
        Self {
            need: answer.device().to_string(),
            verdict: verdict_words(answer, cluster, language),
            host: answer.node().expected().to_string(),
        }
    }
}

/// What a page shows of a job's memory.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryWords {
    row: RowWords,
    rest: RestWords,
    /// When GPU memory peaks.
    moment: String,
    /// What would lower it most.
    savings: Vec<SavingWords>,
    /// What the bounds rest on.
    bounds: String,
    text: String,
    /// The step, stretch by stretch.
    frames: Vec<Frame>,
}

/// A change that lowers the memory of a GPU: its name, what to write, and how much it saves.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SavingWords {
    name: &'static str,
    change: String,
    saved: String,
}

/// What a GPU holds between the phases.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RestWords {
    after_init: Vec<HeldWords>,
    after_backward: Vec<HeldWords>,
    after_step: Vec<HeldWords>,
}

/// A part of memory with its words.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HeldWords {
    name: &'static str,
    words: &'static str,
    bytes: u64,
}

/// The words beside [`json`], for pages that lay them out themselves.
pub fn words(
    report: &MemoryReport<'_>,
    as_measured: &Prediction,
    stretches: &[Stretch],
    layout: &Layout,
) -> MemoryWords {
    let language = layout.language;
    let rows = |rest: &Rest| {
        let parts = parts(rest, &[Place::Device]).into_iter();
        let row = |(part, bytes): (Part, Bytes)| HeldWords {
            name: part.name(),
            words: part.words(language),
            bytes: bytes.0,
        };
        parts.map(row).collect()
    };
    let states = &as_measured.states;
    MemoryWords {
        row: RowWords::new(report.answer, report.question.cluster, language),
        rest: RestWords {
            after_init: rows(&states.after_init),
            after_backward: rows(&states.after_backward),
            after_step: rows(&states.after_step),
        },
        moment: human::moment(report.answer, language).trim_end().to_owned(),
        savings: report
            .reliefs
            .iter()
            .take(human::RELIEFS)
            .map(|Relief { lever, saved }| SavingWords {
                name: relief::name(*lever),
                change: relief::change(*lever, language),
                saved: format!("−{saved}"),
            })
            .collect(),
        bounds: human::bounds(report.answer, language),
        text: super::human(report, layout),
        frames: film(stretches, language),
    }
}

/// What a GPU holds in a stretch of a step, by part.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    phase: &'static str,
    held: Parts,
}

/// What a GPU holds through a step, stretch by stretch, each with the words of its phase.
pub fn film(stretches: &[Stretch], language: Language) -> Vec<Frame> {
    let frame = |stretch: &Stretch| Frame {
        phase: phase::title(stretch.phase).get(language),
        held: held(&stretch.alive),
    };
    stretches.iter().map(frame).collect()
}

fn tensors(prediction: &Prediction) -> Tensors {
    let misc = prediction.buffers + prediction.batch;
    let states = &prediction.states;
    let last = prediction.micro_steps.last();
    let total = |phase: Phase| {
        // The last micro step is the one whose end is a state of rest.
        let peak = match (phase, last) {
            (Phase::Forward, Some(last)) => &last.forward,
            (Phase::Backward, Some(last)) => &last.backward,
            _ => prediction.peak(phase),
        };
        peak.total.0
    };
    Tensors {
        after_init: state(&states.after_init, prediction.buffers),
        after_backward: state(&states.after_backward, misc),
        after_step: state(&states.after_step, misc),
        peak: Peaks {
            init: total(Phase::Init),
            forward: total(Phase::Forward),
            backward: total(Phase::Backward),
            step: total(Phase::Step),
        },
    }
}

fn state(rest: &Rest, misc: Bytes) -> State {
    let at = |place: Place| {
        let here = rest.iter().filter(|(_, at, _)| *at == place);
        here.map(|(category, _, bytes)| (category.name(), bytes.0)).collect()
    };
    State {
        device: at(Place::Device),
        pinned: at(Place::Pinned),
        host: at(Place::Host),
        total: rest.total().0,
        misc: misc.0,
    }
}
