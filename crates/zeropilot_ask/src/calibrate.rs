//! From what a machine measured about itself to its profile.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use zeropilot_cluster::{
    Cluster, Curve, DeviceKind, Fabric, Format, MachineProfile, MeasuredCopies, MeasuredDevice,
    MeasuredMemory, MeasuredRanks, MeasuredRates, Outlook, PROFILE_FORMAT, Pattern,
};
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Zero;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::{Model, Weights};
use zeropilot_step::lower::{LowerError, Recipe};
use zeropilot_step::memory::Question;
use zeropilot_step::program::StepProgram;
use zeropilot_step::time::calibration::{MeasuredStep, fit};
use zeropilot_step::zero::Loading;
use zeropilot_units::{Bytes, ElementSize};

/// A job that the probe runs for a few steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeCase {
    /// The model's `config.json`.
    pub model: Value,
    /// The DeepSpeed config.
    pub config: Value,
    /// Tokens of a sequence.
    pub seq_len: u64,
    /// Whether activations are recomputed.
    #[serde(default)]
    pub grad_checkpointing: bool,
}

/// What the probe is asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeQuestion {
    /// Ranks that measure together.
    pub ranks: u64,
    /// Jobs to run.
    pub cases: Vec<ProbeCase>,
}

/// What the probe answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ProbeAnswer {
    device: MeasuredDevice,
    software: BTreeMap<String, String>,
    memory: MeasuredMemory,
    #[serde(default)]
    kernels: BTreeMap<Format, KernelRates>,
    collectives: BTreeMap<Pattern, Curve>,
    copies: Option<MeasuredCopies>,
    cases: Vec<CaseAnswer>,
}

/// Rates of single kernels.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct KernelRates {
    products: f64,
    attention: f64,
    memory: f64,
    kernel: f64,
}

/// What a case took, or why it did not run.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
enum CaseAnswer {
    Ran { forward: f64, backward: f64, step: f64, resident_bytes: u64 },
    Failed { error: String },
}

/// Why a probe's answer gives no profile.
#[derive(Debug, thiserror::Error)]
pub enum CalibrateProblem {
    /// The probe said that something is wrong.
    #[error("{0}")]
    Probe(String),
    /// The answer is not what a probe writes.
    #[error("the result of the probe cannot be read: {0}")]
    Answer(#[from] serde_json::Error),
    /// Hardly anything ran.
    #[error("only {ran} of {asked} probes ran; the first problem was: {problem}")]
    TooFew {
        /// Cases that ran.
        ran: usize,
        /// Cases that were asked for.
        asked: usize,
        /// What the first of the others said.
        problem: String,
    },
}

/// Layers, width, words, tokens and sequences of a probe's model.
struct Size {
    layers: u64,
    hidden: u64,
    vocabulary: u64,
    seq_len: u64,
    micro_batch: u64,
}

const TINY: Size = Size { layers: 2, hidden: 64, vocabulary: 512, seq_len: 32, micro_batch: 1 };
const SMALL: Size = Size { layers: 4, hidden: 256, vocabulary: 2048, seq_len: 128, micro_batch: 2 };
const LARGER: Size =
    Size { layers: 3, hidden: 512, vocabulary: 4096, seq_len: 128, micro_batch: 2 };
const LONGER: Size =
    Size { layers: 2, hidden: 256, vocabulary: 2048, seq_len: 512, micro_batch: 1 };

/// The jobs that say how fast a machine is: each of what a step is made of decides some of them.
#[must_use]
pub fn probes(kind: DeviceKind, ranks: u64) -> ProbeQuestion {
    let formats: &[Format] = match kind {
        DeviceKind::Cpu => &[Format::Fp32, Format::Bf16],
        DeviceKind::Cuda => &[Format::Bf16],
    };
    let cases = formats.iter().flat_map(|format| cases(*format)).collect();
    ProbeQuestion { ranks, cases }
}

fn cases(format: Format) -> Vec<ProbeCase> {
    let plain = |size, stage, accumulation| case(size, stage, accumulation, format);
    let offloaded = |size, stage| {
        let mut case = plain(size, stage, 1);
        case.config["zero_optimization"]["offload_optimizer"] = json!({"device": "cpu"});
        case
    };
    vec![
        plain(TINY, 0, 1),
        plain(SMALL, 0, 1),
        plain(LARGER, 0, 1),
        ProbeCase { grad_checkpointing: true, ..plain(LONGER, 0, 1) },
        plain(SMALL, 1, 2),
        plain(LARGER, 2, 1),
        plain(TINY, 2, 3),
        plain(TINY, 3, 2),
        plain(SMALL, 3, 1),
        plain(LARGER, 3, 1),
        offloaded(SMALL, 2),
        offloaded(LARGER, 3),
    ]
}

fn case(size: Size, stage: u64, accumulation: u64, format: Format) -> ProbeCase {
    let heads = (size.hidden / 64).max(1);
    let model = json!({
        "model_type": "llama",
        "hidden_size": size.hidden,
        "intermediate_size": 3 * size.hidden,
        "num_hidden_layers": size.layers,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "vocab_size": size.vocabulary,
    });
    let mut config = json!({
        "train_micro_batch_size_per_gpu": size.micro_batch,
        "gradient_accumulation_steps": accumulation,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-4}},
        "zero_optimization": {"stage": stage},
    });
    match format {
        Format::Bf16 => config["bf16"] = json!({"enabled": true}),
        Format::Fp16 => config["fp16"] = json!({"enabled": true}),
        Format::Fp32 => {}
    }
    ProbeCase { model, config, seq_len: size.seq_len, grad_checkpointing: false }
}

impl ProbeCase {
    /// The case as a question about a cluster, handed to `then`; nothing if it makes no sense.
    fn asked<T>(
        &self,
        cluster: &Cluster,
        then: impl FnOnce(&Question<'_>) -> Result<T, LowerError>,
    ) -> Option<T> {
        let text = self.config.to_string();
        let document = parse_json(&text).ok()?;
        let ranks = usize::try_from(cluster.world_size()).ok()?;
        let circumstances = Circumstances::new(EngineVersion::NEWEST, ranks);
        let resolved = resolve(document.root(), circumstances).resolved?;
        let recipe = Recipe {
            checkpointing: self.grad_checkpointing,
            loading: Some(Loading::Whole(ElementSize::Four)),
            ..Recipe::full(self.seq_len)
        };
        let question = Question {
            model: &Model::from_config_with(&self.model.to_string(), Weights::Fresh).ok()?,
            recipe: &recipe,
            resolved: &resolved,
            zero: &resolved.zero(),
            micro_batch: resolved.batch()?.micro,
            cluster,
            rank: None,
        };
        then(&question).ok()
    }

    /// What a rank does in a step; nothing if the case makes no sense.
    #[must_use]
    pub fn program(&self, cluster: &Cluster) -> Option<StepProgram> {
        self.asked(cluster, |question| Ok(question.step_program(&question.workload()?)))
    }

    /// Bytes of tensors that a rank of processors holds at most; nothing if the case makes no sense.
    #[must_use]
    pub fn tensors(&self, cluster: &Cluster) -> Option<Bytes> {
        self.asked(cluster, touched_tensors)
    }

    /// The number format it trains in.
    #[must_use]
    pub fn format(&self) -> Format {
        let is_on = |section: &str| self.config[section]["enabled"] == true;
        match (is_on("bf16"), is_on("fp16")) {
            (true, _) => Format::Bf16,
            (_, true) => Format::Fp16,
            _ => Format::Fp32,
        }
    }
}

/// The profile of a machine from what its probes answered, one answer for each number of ranks.
///
/// # Errors
///
/// If an answer is an error or cannot be read, or too few probes ran.
pub fn profile(answers: &[(ProbeQuestion, String)]) -> Result<MachineProfile, CalibrateProblem> {
    let mut profile: Option<MachineProfile> = None;
    for (question, text) in answers {
        let value: Value = serde_json::from_str(text)?;
        if let Some(error) = value["error"].as_str() {
            return Err(CalibrateProblem::Probe(error.to_owned()));
        }
        let next = measured(question, serde_json::from_value(value)?)?;
        match &mut profile {
            Some(profile) => profile.measured.extend(next.measured),
            None => profile = Some(next),
        }
    }
    profile.ok_or_else(|| CalibrateProblem::Probe("no probe was requested".to_owned()))
}

/// The profile that one answer gives.
fn measured(
    question: &ProbeQuestion,
    answer: ProbeAnswer,
) -> Result<MachineProfile, CalibrateProblem> {
    let kind = answer.device.kind;
    let profile = MachineProfile {
        zeropilot_machine: PROFILE_FORMAT,
        device: answer.device,
        software: answer.software,
        measured: vec![MeasuredRanks {
            ranks: question.ranks,
            memory: answer.memory,
            rates: BTreeMap::new(),
            collectives: answer.collectives,
            copies: answer.copies,
        }],
    };
    let mut cluster = Cluster::new(profile.gpus());
    cluster.profile = Some(Arc::new(profile.clone()));
    let mut steps: BTreeMap<Format, Vec<MeasuredStep>> = BTreeMap::new();
    let mut processes = Vec::new();
    let (mut ran, mut problem) = (0, String::new());
    for (case, answer) in question.cases.iter().zip(answer.cases) {
        match answer {
            CaseAnswer::Ran { forward, backward, step, resident_bytes } => {
                let Some(program) = case.program(&cluster) else { continue };
                let measured = MeasuredStep { program, forward, backward, step };
                steps.entry(case.format()).or_default().push(measured);
                let tensors = case.tensors(&cluster);
                processes.extend(tensors.map(|tensors| (tensors, Bytes(resident_bytes))));
                ran += 1;
            }
            CaseAnswer::Failed { error } if problem.is_empty() => problem = error,
            CaseAnswer::Failed { .. } => {}
        }
    }
    let fabric = Fabric::of(&cluster, Outlook::Expected);
    let fitted = steps.iter().filter_map(|(format, steps)| Some((*format, fit(steps, &fabric)?)));
    let mut rates: BTreeMap<Format, MeasuredRates> = fitted.collect();
    let Some(host) = rates.values().next().copied() else {
        return Err(CalibrateProblem::TooFew { ran, asked: question.cases.len(), problem });
    };
    // On GPUs kernels are timed alone: what small models take there is what the host takes to start them.
    let kernels = answer.kernels.into_iter();
    rates.extend(kernels.map(|(format, kernels)| (format, kernels.with_host(&host))));
    let memory = (kind == DeviceKind::Cpu).then(|| resident(&processes)).flatten();
    let measured = profile.measured.into_iter().map(|of| MeasuredRanks {
        memory: memory.unwrap_or(of.memory),
        rates: rates.clone(),
        ..of
    });
    Ok(MachineProfile { measured: measured.collect(), ..profile })
}

/// Tensors of a rank of processors that it touches. A bucket is allocated as large as the config says, but a host gives no
/// memory for what no gradient ever reaches.
pub(crate) fn touched_tensors(question: &Question<'_>) -> Result<Bytes, LowerError> {
    let reduce_bucket = question.zero.reduce_bucket.min(question.model.elements());
    let zero = &Zero { reduce_bucket, ..question.zero.clone() };
    Ok(Question { zero, ..*question }.tensors(0)?.most_anywhere())
}

/// What a process takes beside its tensors, and what stays resident for a byte of them: the line through what processes
/// had, each relative to itself. An allocator gives back less than it is given.
fn resident(processes: &[(Bytes, Bytes)]) -> Option<MeasuredMemory> {
    let mut sums = [0.0; 5];
    for (tensors, resident) in processes {
        let (tensors, resident) = (tensors.0 as f64, resident.0 as f64);
        let weight = resident.powi(-2);
        let row = [1.0, tensors, tensors * tensors, resident, tensors * resident];
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
    }
    let [count, x, xx, y, xy] = sums;
    let slope = (count * xy - x * y) / (count * xx - x * x);
    let process = (y - slope * x) / count;
    (slope > 0.0 && process > 0.0).then(|| MeasuredMemory {
        process_bytes: Bytes::whole(process).0,
        resident_per_byte: Some(slope),
        context_bytes: None,
        communicator_bytes: None,
    })
}

impl KernelRates {
    fn with_host(self, host: &MeasuredRates) -> MeasuredRates {
        MeasuredRates {
            products_per_s: self.products,
            backward_products_per_s: self.products,
            attention_per_s: self.attention,
            memory_bytes_per_s: self.memory,
            update_bytes_per_s: self.memory,
            kernel_s: self.kernel,
            ..*host
        }
    }
}
