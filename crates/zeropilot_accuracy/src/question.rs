//! What a row asks of a predictor, or why it cannot be asked.

use std::fmt;

use zeropilot_cluster::{AttentionKernel, Gpus};
use zeropilot_model::catalogue::{self, Entry};
use zeropilot_step::lower::Method;
use zeropilot_step::task::Objective;
use zeropilot_step::zero::BaseOptimizer;

use crate::job::{Job, check, job};
use crate::lengths::{DRAWS, Samples};
use crate::lora::method;
use crate::reading::{Lengths, READING};
use crate::recipe::{Pairs, Software};
use crate::row::{Checkpointing, Outcome, Row};

/// Where a question is near to what was run, but not the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Difference {
    /// The model's code is not that of transformers.
    OtherCode,
    /// The model is another one of the same shapes.
    OtherModel(String),
    /// How many weights of a GPTQ base share a scale is not stated.
    GptqGroupAssumed,
    /// The precision is not stated; bf16 is assumed.
    PrecisionAssumed,
    /// Which attention ran is not stated.
    AttentionAssumed,
    /// How much of the sequences are prompts is not stated.
    PromptsLabelled,
    /// How long completions were is not stated.
    CompletionsAssumed,
}

/// Why a row cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Obstacle {
    /// A field is not known.
    Missing(&'static str),
    /// The model is not in the catalogue.
    Model,
    /// FSDP or another engine shards differently.
    Engine,
    /// 16-bit master weights.
    HalfStates,
    /// Compiled or chunked parts of torchtune save other tensors.
    Compiled,
    /// Only some layers or operations are recomputed.
    SelectiveCheckpointing,
    /// Eight-bit products or an eight-bit base.
    Quantization,
    /// Which modules have adapters is not known.
    LoraTargets,
    /// A way to train that has no name here.
    Method,
    /// Tensor, sequence or layer parallel.
    Parallelism,
    /// ZeRO++ or another extension.
    Extension,
    /// The kernels of GPTQ, of which nothing is known.
    Gptq,
    /// Who ran the loop, and how, is not known.
    Runner,
    /// A task that is not modelled.
    Task(String),
    /// The value is the memory of the card.
    CardFull,
    /// Lengths of samples or completions are not published.
    Lengths,
    /// Sizes of images are not.
    Images,
    /// An engine for generation on the same GPUs.
    Colocated,
    /// The teacher generates, and not the student.
    TeacherGenerates,
}

/// A run to predict.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The row.
    pub id: String,
    /// The model.
    pub model: &'static Entry,
    /// Who ran it, with what.
    pub software: Software,
    /// Ranks.
    pub ranks: u64,
    /// The GPUs, if they are in the catalogue.
    pub gpus: Option<Gpus>,
    /// The ZeRO stage.
    pub stage: u8,
    /// The optimizer is on the host.
    pub offload_optimizer: bool,
    /// The parameters are.
    pub offload_parameters: bool,
    /// fp16 rather than bf16.
    pub fp16: bool,
    /// What is trained.
    pub method: Method,
    /// For what, with the help of which other models, if not for the next token.
    pub job: Option<Job>,
    /// The tower that sees is frozen.
    pub freezes_vision: bool,
    /// The optimizer, where DeepSpeed brings none.
    pub optimizer: BaseOptimizer,
    /// Sequences of a micro batch.
    pub micro_batch: u64,
    /// Micro batches of a step.
    pub accumulation: u64,
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Lengths of the micro batches, where they vary, in a few orders.
    pub lengths: Vec<Vec<u64>>,
    /// Every layer is recomputed.
    pub checkpointing: bool,
    /// Which fused attention ran; nothing if it was written out.
    pub attention: Option<AttentionKernel>,
    /// Where this is not quite what was run.
    pub differences: Vec<Difference>,
}

impl Question {
    /// The question of a row.
    ///
    /// # Errors
    ///
    /// If it cannot be asked: the first reason.
    pub fn of(row: &Row) -> Result<Self, Obstacle> {
        let mut differences = Vec::new();
        check(row)?;
        let software = software(row, &mut differences)?;
        let job = job(row, &software)?;
        let model = model(row, &mut differences)?;
        let method = method(row, &mut differences)?;
        let stage = row.zero_stage.ok_or(Obstacle::Missing("zero_stage"))?;
        check_states(row)?;
        let micro_batch = row.micro_batch.ok_or(Obstacle::Missing("micro_batch"))?;
        let samples = samples(job.as_ref(), &software, micro_batch);
        let is_ppo = job.as_ref().is_some_and(|job| matches!(job.objective, Objective::Ppo(_)));
        // What the dataset has are prompts.
        let completion = software.completion.filter(|_| is_ppo);
        let sequence = sequence(row, &software, samples)? + completion.unwrap_or(0);
        if software.keeps_labelled_logits {
            differences.push(Difference::PromptsLabelled);
        }
        if row.rollout.is_some() || is_ppo {
            differences.push(Difference::CompletionsAssumed);
        }
        let ranks = row.gpus.ok_or(Obstacle::Missing("gpus"))?;
        if row.precision.is_none() {
            differences.push(Difference::PrecisionAssumed);
        }
        if row.flash_attn.is_none() {
            differences.push(Difference::AttentionAssumed);
        }
        Ok(Self {
            id: row.id.clone(),
            model,
            software,
            ranks,
            gpus: gpus(row, ranks),
            stage,
            offload_optimizer: on_host(row.offload_optimizer.as_deref()),
            offload_parameters: on_host(row.offload_param.as_deref()),
            fp16: row.precision.as_deref().is_some_and(|precision| precision.contains("fp16")),
            method,
            job,
            freezes_vision: row.frozen.as_deref() == Some("vision"),
            optimizer: optimizer(row),
            micro_batch,
            accumulation: row.grad_accum.unwrap_or(1),
            sequence,
            lengths: if is_ppo { Vec::new() } else { lengths(row, samples) },
            // Trainers of PPO do not read the argument.
            checkpointing: checkpointing(row)? && !is_ppo,
            attention: attention(row),
            differences,
        })
    }

    /// Whether it is exactly what was run, as far as the row tells.
    pub fn is_same(&self) -> bool {
        self.differences.is_empty()
    }
}

fn software(row: &Row, differences: &mut Vec<Difference>) -> Result<Software, Obstacle> {
    if row.parallelism.as_deref().is_some_and(|parallelism| parallelism != "dp") {
        return Err(Obstacle::Parallelism);
    }
    let framework = row.framework.as_deref().ok_or(Obstacle::Missing("framework"))?;
    let has = |word: &str| framework.contains(word);
    if has("FSDP") || has("torchtitan") {
        return Err(Obstacle::Engine);
    }
    if has("ZeRO++") {
        return Err(Obstacle::Extension);
    }
    if has("torchtune") {
        return Err(Obstacle::Compiled);
    }
    if has("Lightning") {
        differences.push(Difference::OtherCode);
    }
    Software::of(row).ok_or(Obstacle::Runner)
}

fn model(row: &Row, differences: &mut Vec<Difference>) -> Result<&'static Entry, Obstacle> {
    let name = match READING.models.get(&row.model) {
        None => row.model.as_str(),
        Some(reading) => {
            differences.extend(reading.differs.clone().map(Difference::OtherModel));
            reading.catalogue.as_str()
        }
    };
    catalogue::find(name).map_err(|_| Obstacle::Model)
}

fn check_states(row: &Row) -> Result<(), Obstacle> {
    let precision = row.precision.as_deref().unwrap_or("").to_lowercase();
    if precision.contains("float8") {
        return Err(Obstacle::Quantization);
    }
    if precision.contains("bf16 master") {
        return Err(Obstacle::HalfStates);
    }
    Ok(())
}

fn optimizer(row: &Row) -> BaseOptimizer {
    let name = row.optimizer.as_deref().unwrap_or("");
    if name.contains("8bit") { BaseOptimizer::EightBitAdam } else { BaseOptimizer::TorchAdam }
}

fn checkpointing(row: &Row) -> Result<bool, Obstacle> {
    match &row.grad_ckpt {
        Some(Checkpointing::All(all)) => Ok(*all),
        Some(Checkpointing::Some(_)) => Err(Obstacle::SelectiveCheckpointing),
        None => Err(Obstacle::Missing("grad_ckpt")),
    }
}

fn attention(row: &Row) -> Option<AttentionKernel> {
    let fused = READING.attention.get(row.prefix()).copied().unwrap_or_default();
    (row.flash_attn != Some(false)).then(|| fused.into())
}

/// What is known of the lengths of a row whose samples vary.
fn known_lengths(row: &Row) -> Option<&'static Lengths> {
    match row.seq_mode.as_deref() {
        Some("max_reached") => READING.lengths.get(row.prefix()),
        Some("cap") => READING.lengths.get(row.dataset.as_ref()?),
        _ => None,
    }
}

/// The samples of a micro batch: answers come in pairs.
fn samples(job: Option<&Job>, software: &Software, micro_batch: u64) -> Samples {
    let count = micro_batch * job.map_or(1, |job| job.objective.rows());
    Samples { count, is_padded: software.pairs == Pairs::Padded }
}

/// The longest sample that is not deleted.
fn longest(row: &Row, stated: u64) -> Result<u64, Obstacle> {
    let is_cap = row.seq_mode.as_deref() == Some("cap") && row.outcome != Outcome::Oom;
    if !is_cap {
        return Ok(stated);
    }
    let known = known_lengths(row).and_then(|lengths| lengths.most);
    known.map(|most| most.min(stated)).ok_or(Obstacle::Lengths)
}

/// Tokens of a sequence of the fullest micro batch.
fn sequence(row: &Row, software: &Software, samples: Samples) -> Result<u64, Obstacle> {
    let stated = row.seq_len.ok_or(Obstacle::Missing("seq_len"))?;
    if software.pairs == Pairs::Packed {
        return Ok(stated / samples.count.max(1));
    }
    let longest = longest(row, stated)?;
    Ok(known_lengths(row).map_or(longest, |lengths| lengths.fullest(longest, samples)))
}

/// Lengths of micro batches, where samples vary.
fn lengths(row: &Row, samples: Samples) -> Vec<Vec<u64>> {
    let longest = row.seq_len.and_then(|stated| longest(row, stated).ok());
    let (Some(known), Some(longest)) = (known_lengths(row), longest) else { return Vec::new() };
    (0..DRAWS).map(|seed| known.draw(longest, samples, seed)).collect()
}

fn on_host(offload: Option<&str>) -> bool {
    offload.is_some_and(|place| place == "cpu")
}

fn gpus(row: &Row, ranks: u64) -> Option<Gpus> {
    let nodes = row.nodes.filter(|nodes| ranks.is_multiple_of(*nodes)).unwrap_or(1);
    let card = row.gpu.as_deref()?;
    let card = READING.cards.get(card).map_or(card, String::as_str);
    format!("{nodes}x{}x{card}", ranks / nodes).parse().ok()
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing(field) => return write!(f, "`{field}` is not published"),
            Self::Model => "the model is not built in",
            Self::Engine => "FSDP partitions states differently",
            Self::HalfStates => "16-bit master weights",
            Self::Compiled => "compiled or chunked parts of torchtune save different tensors",
            Self::SelectiveCheckpointing => "gradient checkpointing of only some operations",
            Self::Quantization => "8-bit weights or matrix products",
            Self::LoraTargets => "the modules with adapters are unclear",
            Self::Method => "zeropilot does not support the training method",
            Self::Parallelism => "not only data parallelism",
            Self::Extension => "ZeRO++",
            Self::Gptq => "GPTQ's kernels",
            Self::Runner => "the trainer and its settings are not known",
            Self::Task(name) => return write!(f, "{name} is not modeled"),
            Self::CardFull => "the published value is the memory of the GPU",
            Self::Lengths => "the lengths of samples or completions are not published",
            Self::Images => "the sizes of the images are not published",
            Self::Colocated => "vLLM on the same GPUs",
            Self::TeacherGenerates => "the teacher generates",
        })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherCode => "the model's code is not that of transformers",
            Self::OtherModel(how) => how,
            Self::GptqGroupAssumed => "GPTQ base model (assumed: groups of 128)",
            Self::PrecisionAssumed => "precision not published (assumed: bf16)",
            Self::AttentionAssumed => "attention not published (assumed: PyTorch's default)",
            Self::PromptsLabelled => {
                "prompt length not published (assumed: the loss scores every token)"
            }
            Self::CompletionsAssumed => {
                "completion length not published (assumed: that of the longest sample)"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use zeropilot_step::head::LossHead;
    use zeropilot_step::task::Scores;

    use super::*;
    use crate::row::rows;

    fn question(id: &str) -> Result<Question, Obstacle> {
        Question::of(rows().iter().find(|row| row.id == id).unwrap())
    }

    #[test]
    fn a_deepspeed_run_is_asked_as_it_was_run() {
        let asked = question("mleng-013").unwrap();
        assert!(asked.is_same(), "{:?}", asked.differences);
        assert_eq!(asked.model.id, "meta-llama/Meta-Llama-3.1-8B");
        assert_eq!((asked.stage, asked.ranks, asked.sequence), (2, 8, 8192));
        assert_eq!(asked.gpus.unwrap().to_string(), "1x8xH200-SXM-141GB");
        assert_eq!(asked.software.loss, LossHead::Model);
        assert_eq!(question("mleng-015").unwrap().software.loss, LossHead::FusedWithCopies);
        let offloaded = question("gist7b-008").unwrap();
        assert!(offloaded.offload_optimizer && offloaded.offload_parameters);
    }

    #[test]
    fn a_job_is_asked_with_the_loss_of_its_trainer() {
        let packed = question("swiftx-059").unwrap();
        let job = packed.job.unwrap();
        let at_once = Objective::Dpo { scores: Scores::AtOnce, last_logits: false };
        assert_eq!((job.objective, job.has_reference), (at_once, true));
        // Both answers of all pairs are in one sequence of 8192.
        assert_eq!((packed.micro_batch, packed.sequence), (1, 4096));
        // The cap is 8192, the longest sample of the dataset has 1801.
        let padded = question("swiftx-076").unwrap();
        assert_eq!((padded.sequence, padded.lengths.len()), (1801, 3));
        let distilled = question("swiftx-080").unwrap().job.unwrap();
        assert_eq!(distilled.teacher.map(|teacher| teacher.id.as_str()), Some("Qwen/Qwen3-8B"));
        // Prompts of at most 607 tokens and completions of 512, nothing recomputed.
        let ppo = question("swiftx-083").unwrap();
        assert_eq!((ppo.sequence, ppo.accumulation, ppo.checkpointing), (1119, 2, false));
        assert_eq!(question("dschat-004"), Err(Obstacle::Lengths));
        assert_eq!(question("swiftx-078"), Err(Obstacle::Lengths));
        assert_eq!(question("swiftx-079"), Err(Obstacle::TeacherGenerates));
        assert_eq!(question("swiftx-081"), Err(Obstacle::Colocated));
    }

    #[test]
    fn what_cannot_be_asked_says_why() {
        assert_eq!(question("titan-001"), Err(Obstacle::Engine));
        assert_eq!(question("tune-002"), Err(Obstacle::Compiled));
        assert_eq!(question("litgpt-001"), Err(Obstacle::Model));
        assert_eq!(question("longlora-001"), Err(Obstacle::Missing("lora_rank")));
    }

    #[test]
    fn every_complete_row_is_asked_or_has_an_obstacle_that_is_no_missing_field_of_completeness() {
        let mut obstacles: BTreeMap<Obstacle, usize> = BTreeMap::new();
        let mut asked = 0;
        for row in rows().iter().filter(|row| row.complete_memory) {
            match Question::of(row) {
                Ok(_) => asked += 1,
                Err(obstacle) => *obstacles.entry(obstacle).or_default() += 1,
            }
        }
        assert_eq!(asked + obstacles.values().sum::<usize>(), 319);
        for field in ["gpus", "zero_stage", "micro_batch", "seq_len", "grad_ckpt", "method"] {
            assert!(!obstacles.contains_key(&Obstacle::Missing(field)), "{field}");
        }
        println!("{asked} asked, {obstacles:?}");
    }
}
