//! A row of throughput as a step on a cluster.

use serde_json::{Value, json};
use zeropilot_cluster::{Cluster, Fabric, Format, Outlook, Pace, Shares};
use zeropilot_config::resolve::{Accelerator, Circumstances, Source, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Precision;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::{Model, Weights, catalogue};
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{Conditions, Lowered, Method, Recipe};
use zeropilot_step::program::StepProgram;
use zeropilot_step::tape::{AttentionForm, Kernels, Options};
use zeropilot_step::time::{Machine, StepTime, estimate, simulate};
use zeropilot_step::zero::BaseOptimizer;

use super::calibration::Constants;
use crate::lora::method;
use crate::question::Obstacle;
use crate::reading::READING;
use crate::row::{Checkpointing, Row};

/// Who ran the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    /// DeepSpeed.
    DeepSpeed,
    /// PyTorch's FSDP, asked as stage 3 (or 2).
    Fsdp,
    /// Something else, asked as the same stage.
    Other,
}

/// A row that can be asked.
#[derive(Debug)]
pub struct Run {
    /// The row.
    pub row: &'static Row,
    /// Who ran it.
    pub engine: Engine,
    /// Its step.
    pub program: StepProgram,
    /// Where.
    pub cluster: Cluster,
    /// The number format.
    pub precision: Precision,
    /// Tokens of a step of one GPU.
    pub tokens: f64,
    /// Tokens per second of a GPU, as published.
    pub measured: f64,
    /// Where this is not quite what was run.
    pub differences: Vec<String>,
}

/// A row that cannot be asked, and why.
pub type Unasked = (&'static Row, String);

/// Every row complete for throughput, or why it cannot be asked.
pub fn runs(rows: &'static [Row]) -> (Vec<Run>, Vec<Unasked>) {
    let (mut asked, mut unasked) = (Vec::new(), Vec::new());
    for row in rows.iter().filter(|row| row.complete_throughput) {
        match Run::of(row) {
            Ok(run) => asked.push(run),
            Err(reason) => unasked.push((row, reason)),
        }
    }
    (asked, unasked)
}

impl Run {
    fn of(row: &'static Row) -> Result<Self, String> {
        let obstacle = |obstacle: Obstacle| obstacle.to_string();
        let mut differences = Vec::new();
        let engine = engine(row, &mut differences).map_err(obstacle)?;
        let model = model(row, &mut differences)?;
        let recipe = recipe(row, &mut differences).map_err(obstacle)?;
        let cluster = cluster(row)?;
        let measured = row.tokens_per_s_per_gpu.ok_or("tokens per second are not published")?;
        let text = config(row, engine).map_err(obstacle)?.to_string();
        let document = parse_json(&text).map_err(|error| format!("{error:?}"))?;
        let world = cluster.world_size();
        let circumstances = Circumstances {
            version: EngineVersion::NEWEST,
            world_size: usize::try_from(world).map_err(|error| error.to_string())?,
            source: Source::Dictionary,
            accelerator: Accelerator::Cuda,
        };
        let resolution = resolve(document.root(), circumstances);
        let resolved = resolution.resolved.ok_or("DeepSpeed rejects the config")?;
        let zero = resolved.zero();
        let micro = row.micro_batch.unwrap_or(1);
        let options = Options { kernels: Kernels::Cuda, ..Options::default() };
        let precision = resolved.precision();
        let conditions = Conditions::of(&zero, precision.element_size(), micro, options);
        let lowered =
            Lowered::new(&model, &recipe, &conditions).map_err(|error| error.to_string())?;
        let rank = lowered.rank(&resolved, &zero, world, 0);
        let program = StepProgram::of(&lowered, &rank, resolved.clips_gradients());
        let tokens = (micro * recipe.sequence * program.accumulation) as f64;
        let run = Self { row, engine, program, cluster, precision, tokens, measured, differences };
        run.pace(Shares::of(run.architecture(), Outlook::Expected))
            .ok_or("the speed of the GPU is not known")?;
        Ok(run)
    }

    /// The source's short name.
    pub fn source(&self) -> &'static str {
        self.row.prefix()
    }

    /// The architecture of its GPUs.
    pub fn architecture(&self) -> &'static str {
        self.cluster.gpus.device.accelerator().map_or("", |card| card.arch.as_str())
    }

    fn pace(&self, shares: Shares) -> Option<Pace> {
        let format = match self.precision {
            Precision::Fp32 => Format::Fp32,
            Precision::Fp16 { .. } => Format::Fp16,
            Precision::Bf16 { .. } => Format::Bf16,
        };
        Pace::with(&self.cluster, format, shares, Outlook::Expected)
    }

    /// The step with these constants.
    pub fn simulate(&self, constants: &Constants) -> StepTime {
        let kernel = READING.attention.get(self.source()).copied().unwrap_or_default();
        let mut shares = Shares::of(self.architecture(), Outlook::Expected)
            .with_attention(self.architecture(), kernel.into());
        constants.apply(self.architecture(), self.is_recent(), &mut shares);
        if self.engine != Engine::DeepSpeed {
            // DeepSpeed's hooks are DeepSpeed's.
            shares.hook = 0.0;
        }
        let pace = self.pace(shares).expect("checked when the row was read");
        let fabric = Fabric::of(&self.cluster, Outlook::Expected);
        simulate(&self.program, &Machine { pace, fabric })
    }

    /// Tokens per second of a GPU.
    pub fn predict(&self, constants: &Constants) -> f64 {
        self.tokens / self.simulate(constants).total
    }

    /// Bounds around a prediction, as far apart as those of the shipped constants.
    pub fn bounds(&self, predicted: f64) -> (f64, f64) {
        let Some(estimated) = estimate(&self.program, &self.cluster, self.precision) else {
            return (predicted, predicted);
        };
        let (best, expected) = (estimated.best.total, estimated.expected.total);
        (predicted * expected / estimated.worst.total, predicted * expected / best)
    }

    /// Whether its software is from 2024 or later.
    fn is_recent(&self) -> bool {
        let year = self.row.date.as_deref().and_then(|date| date.get(..4)?.parse::<u32>().ok());
        year.is_some_and(|year| year >= 2024)
    }

    /// Whether it is dense pre-training.
    pub fn is_pretraining(&self) -> bool {
        self.row.method.as_deref() == Some("pretrain")
    }
}

fn engine(row: &Row, differences: &mut Vec<String>) -> Result<Engine, Obstacle> {
    if row.parallelism.as_deref().is_some_and(|parallelism| parallelism != "dp") {
        return Err(Obstacle::Parallelism);
    }
    let framework = row.framework.as_deref().unwrap_or("");
    let precision = row.precision.as_deref().unwrap_or("").to_lowercase();
    if precision.contains("fp8") || precision.contains("float8") {
        return Err(Obstacle::Quantization);
    }
    if framework.contains("compile") || framework.contains("torchtune") {
        return Err(Obstacle::Compiled);
    }
    if precision.contains("gptq") {
        return Err(Obstacle::Gptq);
    }
    if framework.contains("Unsloth") {
        return Err(Obstacle::Method);
    }
    if framework.contains("Liger") && !framework.contains("no Liger") {
        differences.push("Liger's kernels, of which only the loss is modeled".to_owned());
    }
    if framework.contains("FSDP") || framework.contains("torchtitan") {
        differences.push("FSDP, predicted as ZeRO of the same stage".to_owned());
        return Ok(Engine::Fsdp);
    }
    if framework.contains("DeepSpeed") && !framework.contains("no DeepSpeed")
        || framework.contains("equals DeepSpeed")
    {
        return Ok(Engine::DeepSpeed);
    }
    differences.push("without DeepSpeed, predicted as the same stage".to_owned());
    Ok(Engine::Other)
}

fn model(row: &Row, differences: &mut Vec<String>) -> Result<Model, String> {
    if let Some(shape) = READING.shapes.get(&row.model) {
        differences.push(shape.differs.clone());
        let text = shape.config.to_string();
        return Model::from_config_with(&text, Weights::Fresh).map_err(|error| error.to_string());
    }
    let reading = READING.models.get(&row.model);
    differences.extend(reading.and_then(|reading| reading.differs.clone()));
    let name = reading.map_or(row.model.as_str(), |reading| reading.catalogue.as_str());
    let entry = catalogue::find(name).map_err(|_| Obstacle::Model.to_string())?;
    entry.model().map_err(|error| error.to_string())
}

fn recipe(row: &Row, differences: &mut Vec<String>) -> Result<Recipe, Obstacle> {
    let mut other = Vec::new();
    let method: Method = method(row, &mut other)?;
    differences.extend(other.iter().map(ToString::to_string));
    let checkpointing = match &row.grad_ckpt {
        Some(Checkpointing::All(all)) => *all,
        Some(Checkpointing::Some(_)) => return Err(Obstacle::SelectiveCheckpointing),
        None => return Err(Obstacle::Missing("grad_ckpt")),
    };
    let framework = row.framework.as_deref().unwrap_or("");
    let is_fused = framework.contains("Liger") && !framework.contains("no Liger")
        || framework.contains("fused layernorm");
    let is_eager = row.flash_attn == Some(false);
    Ok(Recipe {
        method,
        checkpointing,
        attention: if is_eager { AttentionForm::Eager } else { AttentionForm::Flash },
        loss: if is_fused { LossHead::Fused } else { LossHead::Model },
        optimizer: BaseOptimizer::FusedAdam,
        ..Recipe::full(row.seq_len.ok_or(Obstacle::Missing("seq_len"))?)
    })
}

fn cluster(row: &Row) -> Result<Cluster, String> {
    let ranks = row.gpus.ok_or("`gpus` is not published")?;
    let card = row.gpu.as_deref().ok_or("`gpu` is not published")?;
    let card = READING.cards.get(card).map_or(card, String::as_str);
    let stated = row.nodes.filter(|nodes| *nodes > 0 && ranks.is_multiple_of(*nodes));
    let nodes = stated.unwrap_or_else(|| ranks.div_ceil(8).max(1));
    let text = format!("{nodes}x{}x{card}", ranks / nodes);
    let gpus = text.parse().map_err(|_| format!("the GPU {card} is not in the catalogue"))?;
    let mut cluster = Cluster::new(gpus);
    let network = row.interconnect.as_ref().and_then(|text| READING.networks.get(text));
    cluster.network = network.and_then(|text| text.parse().ok());
    Ok(cluster)
}

fn config(row: &Row, engine: Engine) -> Result<Value, Obstacle> {
    let stage = row.zero_stage.ok_or(Obstacle::Missing("zero_stage"))?;
    let mut zero = json!({ "stage": stage });
    let on_host = |place: &Option<String>| place.as_deref() == Some("cpu");
    let host = json!({ "device": "cpu", "pin_memory": true });
    if on_host(&row.offload_optimizer) && stage > 0 {
        zero["offload_optimizer"] = host.clone();
    }
    if on_host(&row.offload_param) && stage == 3 {
        zero["offload_param"] = host;
    }
    if engine != Engine::DeepSpeed && stage > 0 {
        // Other engines overlap what they send.
        zero["overlap_comm"] = json!(true);
    }
    let words = row.precision.as_deref().unwrap_or("");
    let precision = if words.contains("fp16") { "fp16" } else { "bf16" };
    let mut config = json!({
        "train_micro_batch_size_per_gpu": row.micro_batch.ok_or(Obstacle::Missing("micro_batch"))?,
        "gradient_accumulation_steps": row.grad_accum.unwrap_or(1),
        precision: { "enabled": true },
        "optimizer": { "type": "AdamW" },
        "zero_optimization": zero,
    });
    if words == "amp_bf16" {
        // FSDP's default reduces in 32 bits.
        config["communication_data_type"] = json!("fp32");
    }
    Ok(config)
}
