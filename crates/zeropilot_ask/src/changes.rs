//! What to change in the files of a job so that it trains as a plan recommends.

use serde_json::{Value, json};
use zeropilot_config::syntax::{self, Node, parse_hjson};
use zeropilot_job::{ConfigContent, Framework, Sourced, TrainingJob};
use zeropilot_lint::{put_key, take_key};
use zeropilot_plan::{Fitting, Precision, Target, Work};

const ZERO: &str = "zero_optimization";
/// Keys of `zero_optimization` that are a part of the strategy: where the recommended one has none of them they go.
const STRATEGY: [&str; 3] = ["offload_optimizer", "offload_param", "zero_hpz_partition_size"];

/// What to change in a job.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// What becomes of the config.
    pub config: ConfigChange,
    /// Values that other files say, or should say.
    pub arguments: Vec<ArgumentChange>,
    /// Keys of `zero_optimization` that the job keeps and the recommended config does not have.
    pub kept: Vec<String>,
}

/// What becomes of the config of a job.
#[derive(Debug, Default, PartialEq, Eq)]
pub enum ConfigChange {
    /// It stays.
    #[default]
    Nothing,
    /// It becomes this text.
    Text(String),
    /// It must change, and there is no text in which that can be done.
    NoText,
}

/// A value beside the config that must change.
#[derive(Debug, PartialEq)]
pub struct ArgumentChange {
    /// Which, by its name among the arguments of recipes.
    pub field: &'static str,
    /// What the framework calls it; none where only code can say it.
    pub name: Option<&'static str>,
    /// What it is, where the job says it or a framework fills it.
    pub now: Option<Sourced<Value>>,
    /// What it must be.
    pub to: Value,
}

impl Changes {
    /// From a job to a strategy for so many ranks.
    pub fn of(job: &TrainingJob, choice: &Fitting, world: u64) -> Self {
        let written = match job.config.as_ref().map(|config| &config.content) {
            Some(ConfigContent::Text(text)) => Some(text),
            _ => None,
        };
        let config = match written.map(|text| (text, recommended(text, choice, world))) {
            Some((text, Some(now))) if now == *text => ConfigChange::Nothing,
            Some((_, Some(now))) => ConfigChange::Text(now),
            _ => ConfigChange::NoText,
        };
        let document = written.and_then(|text| parse_hjson(text).ok());
        let root = document.as_ref().map(|document| document.root());
        let kept = root.map(|root| kept(root, choice)).unwrap_or_default();
        let mut arguments = arguments(job, root, choice, world);
        arguments.extend(sleep_of_vllm(job, choice));
        Self { config, arguments, kept }
    }

    /// Whether the job already trains like that.
    pub fn is_empty(&self) -> bool {
        self.config == ConfigChange::Nothing && self.arguments.is_empty()
    }
}

/// The config with the strategy in it and everything else as it is; `None` if it cannot be written so.
fn recommended(text: &str, choice: &Fitting, world: u64) -> Option<String> {
    let config = choice.recipe.config();
    let mut text = text.to_owned();
    for key in [ZERO, "aio"] {
        if let Some(section) = config.get(key) {
            text = put_key(&text, &[key], section)?;
        }
    }
    for key in STRATEGY.into_iter().filter(|key| config[ZERO].get(key).is_none()) {
        let off = if key.starts_with("offload") { json!({"device": "none"}) } else { json!(1) };
        text = match take_key(&text, &[ZERO, key]) {
            Some(without) => without,
            None => put_key(&text, &[ZERO, key], &off)?,
        };
    }
    let document = parse_hjson(&text).ok()?;
    let offloads = config[ZERO].get("offload_optimizer").is_some();
    if offloads
        && choice.recipe.target == Target::DeepSpeed
        && document.root().get("optimizer").is_none()
    {
        // Without it DeepSpeed refuses the optimizer of a script. accelerate, and so every trainer, replaces PyTorch's
        // with DeepSpeed's CPU optimizer, but not where the key is false.
        text = put_key(&text, &["zero_force_ds_cpu_optimizer"], &json!(false))?;
    }
    let Work { micro_batch, accumulation, long_context, .. } = choice.way.work;
    let world = long_context.groups(world);
    let target = choice.recipe.target;
    for (key, value, is_wanted) in [
        ("train_batch_size", micro_batch * accumulation * world, false),
        ("gradient_accumulation_steps", accumulation, accumulation > 1),
        ("train_micro_batch_size_per_gpu", micro_batch, target == Target::DeepSpeed),
    ] {
        let is_filled = !matches!(target, Target::DeepSpeed | Target::Accelerate);
        let is_put = match document.root().get(key) {
            Some(node) => is_number(node),
            None => is_wanted && !is_filled,
        };
        if is_put {
            text = put_key(&text, &[key], &json!(value))?;
        }
    }
    Some(text)
}

/// Whether vLLM sleeps while the model is trained, where the job says otherwise or nothing: then no framework lets it.
fn sleep_of_vllm(job: &TrainingJob, choice: &Fitting) -> Option<ArgumentChange> {
    let sleeps = choice.answer.rollout?.sleeps;
    let said = job.task.as_ref().and_then(|task| task.vllm.sleeps.clone());
    if said.as_ref().is_some_and(|said| said.value) == sleeps {
        return None;
    }
    let is_swift = job.framework == Some(Framework::Swift);
    let name = match job.framework {
        Some(Framework::Trl) => Some("vllm_enable_sleep_mode"),
        Some(Framework::Swift) => Some("sleep_level"),
        _ => None,
    };
    let value = |sleeps: bool| if is_swift { json!(u8::from(sleeps)) } else { json!(sleeps) };
    let now = said.map(|said| said.map(value));
    Some(ArgumentChange { field: "vllm_sleep", name, now, to: value(sleeps) })
}

/// Keys of the section with a value of their own, apart from those of the recommended one.
fn kept(root: &Node, choice: &Fitting) -> Vec<String> {
    let recommended = choice.recipe.config();
    let section = root.get(ZERO).and_then(|section| match &section.value {
        syntax::Value::Object(entries) => Some(entries),
        _ => None,
    });
    let is_kept = |key: &str, value: &Node| {
        recommended.get(ZERO).is_none_or(|section| section.get(key).is_none())
            && !STRATEGY.contains(&key)
            && value.value != syntax::Value::Str("auto".to_owned())
    };
    section
        .into_iter()
        .flatten()
        .filter(|entry| is_kept(&entry.key, &entry.value))
        .map(|entry| entry.key.clone())
        .collect()
}

fn is_number(node: &Node) -> bool {
    matches!(node.value, syntax::Value::Int(_) | syntax::Value::Float(_))
}

/// What the program must be told otherwise than now.
fn arguments(
    job: &TrainingJob,
    config: Option<&Node>,
    choice: &Fitting,
    world: u64,
) -> Vec<ArgumentChange> {
    let target = choice.recipe.target;
    let is_told = !matches!(target, Target::DeepSpeed | Target::Accelerate);
    let Work { micro_batch, accumulation, checkpointing, fused_loss, long_context } =
        choice.way.work;
    let told = choice.arguments(target);
    let name = |wanted: &str| told.iter().map(|one| one.name).find(|name| name.contains(wanted));
    let mut all = Vec::new();
    let mut want = |field, name, now: Option<Sourced<Value>>, to: Value| {
        if now.as_ref().map(|now| &now.value) != Some(&to) {
            all.push(ArgumentChange { field, name, now, to });
        }
    };
    let number = |said: &Option<Sourced<u64>>| said.clone().map(|said| said.map(Value::from));
    let switch = |said: &Option<Sourced<bool>>| said.clone().map(|said| said.map(Value::from));
    if job.world_size.is_some() {
        want("world_size", None, number(&job.world_size), world.into());
    }
    let is_in_config = |key: &str| config.and_then(|root| root.get(key)).is_some_and(is_number);
    if is_told {
        want("micro_batch", name("batch_size"), number(&job.micro_batch), micro_batch.into());
    } else if target == Target::Accelerate && !is_in_config("train_micro_batch_size_per_gpu") {
        want("micro_batch", None, number(&job.micro_batch), micro_batch.into());
    }
    let steps = "gradient_accumulation_steps";
    if is_told || (target == Target::Accelerate && !is_in_config(steps) && accumulation > 1) {
        want("grad_accum", Some(steps), number(&job.grad_accum), accumulation.into());
    }
    if job.grad_checkpointing.as_ref().is_some_and(|said| said.value) != checkpointing {
        // A switch of its own is what LLaMA-Factory has to turn it off.
        let off = "disable_gradient_checkpointing";
        if target == Target::LlamaFactory && !checkpointing {
            want("no_grad_checkpointing", Some(off), None, true.into());
        } else {
            let name = is_told.then_some("gradient_checkpointing");
            want("grad_checkpointing", name, switch(&job.grad_checkpointing), checkpointing.into());
        }
    }
    if fused_loss && !job.fused_loss.as_ref().is_some_and(|said| said.value) {
        // Where a switch of Liger's says it, that switch is turned.
        let field = if job.liger.is_some() { "liger" } else { "fused_loss" };
        want(field, name("liger"), switch(&job.fused_loss), true.into());
    }
    let shares = long_context.sequence_ranks;
    if shares > 1 && job.sequence_parallel.as_ref().is_none_or(|said| said.value != shares) {
        let now = number(&job.sequence_parallel);
        want("sequence_parallel", name("sequence_parallel"), now, shares.into());
    }
    let is_on = |section: &str| {
        let enabled = config.and_then(|root| root.get(section)?.get("enabled"));
        enabled.is_some_and(|node| node.value == syntax::Value::Bool(true))
    };
    if is_told && job.precision.is_none() && !is_on("bf16") && !is_on("fp16") {
        let name = match choice.recipe.precision {
            Precision::Bf16 => "bf16",
            Precision::Fp16(_) => "fp16",
            Precision::Fp32 => return all,
        };
        want("precision", Some(name), None, true.into());
    }
    all
}
