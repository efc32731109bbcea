//! The config of a memory question: a file with its `auto` values filled, or one made from flags.

use serde_json::{Map, Value, json};
use zeropilot_config::front_end::{
    Arguments, FrontEnd, ModelFacts, Number, TrainerArguments, fill,
};
use zeropilot_config::resolve::{Circumstances, ResolvedConfig, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::{Node, decode, parse_hjson};

use super::arguments::{MemoryCommand, Offload, PrecisionName};

/// A config from flags, for a stage and offload.
pub(crate) fn from_flags(command: &MemoryCommand, stage: u8, offload: Offload) -> String {
    let mut zero = Map::new();
    zero.insert("stage".to_owned(), json!(stage));
    let on_host = json!({"device": "cpu", "pin_memory": true});
    if offload != Offload::None && stage > 0 {
        zero.insert("offload_optimizer".to_owned(), on_host.clone());
    }
    if offload == Offload::All && stage == 3 {
        zero.insert("offload_param".to_owned(), on_host);
    }
    let mut config = Map::new();
    let micro = command.training.micro_batch.unwrap_or(1);
    config.insert("train_micro_batch_size_per_gpu".to_owned(), json!(micro));
    let accumulation = command.training.grad_accum.unwrap_or(1);
    config.insert("gradient_accumulation_steps".to_owned(), json!(accumulation));
    match command.precision {
        PrecisionName::Bf16 => config.insert("bf16".to_owned(), json!({"enabled": true})),
        PrecisionName::Fp16 => config.insert("fp16".to_owned(), json!({"enabled": true})),
        PrecisionName::Fp32 => None,
    };
    config.insert("zero_optimization".to_owned(), Value::Object(zero));
    Value::Object(config).to_string()
}

/// The config as the engine resolves it; `None` if it refuses.
pub(crate) fn resolved(
    bytes: &[u8],
    version: EngineVersion,
    world: u64,
    hidden: u64,
    command: &MemoryCommand,
) -> Option<ResolvedConfig> {
    let document = parse_hjson(decode(bytes).ok()?).ok()?;
    let world_size = usize::try_from(world).ok()?;
    let circumstances = Circumstances::new(version, world_size);
    if !has_auto(document.root()) {
        return resolve(document.root(), circumstances).resolved;
    }
    let facts = ModelFacts::with_hidden_size(hidden);
    let filled =
        fill(FrontEnd::HfTrainer, document.root(), &arguments(command), Some(&facts), Some(world));
    resolve(&filled.root, circumstances).resolved
}

fn has_auto(node: &Node) -> bool {
    use zeropilot_config::syntax::Value as Tree;
    match &node.value {
        Tree::Str(text) => text == "auto",
        Tree::Object(members) => members.iter().any(|member| has_auto(&member.value)),
        Tree::Array(items) => items.iter().any(has_auto),
        _ => false,
    }
}

/// What a Trainer with its defaults would fill; none of it but the batch and the precision changes memory.
fn arguments(command: &MemoryCommand) -> Arguments {
    let signed = |number: Option<u64>| number.and_then(|number| i64::try_from(number).ok());
    let trainer = TrainerArguments {
        per_device_train_batch_size: Some(signed(command.training.micro_batch).unwrap_or(1)),
        gradient_accumulation_steps: Some(signed(command.training.grad_accum).unwrap_or(1)),
        max_grad_norm: Some(Number::Float(1.0)),
        learning_rate: Some(Number::Float(5e-5)),
        adam_beta1: Some(Number::Float(0.9)),
        adam_beta2: Some(Number::Float(0.999)),
        adam_epsilon: Some(Number::Float(1e-8)),
        weight_decay: Some(Number::Float(0.0)),
        warmup_steps: Some(Number::Int(0)),
        num_training_steps: Some(1000),
        fp16: Some(command.precision == PrecisionName::Fp16),
        bf16: Some(command.precision == PrecisionName::Bf16),
        fp16_full_eval: Some(false),
        bf16_full_eval: Some(false),
        ..TrainerArguments::default()
    };
    Arguments { trainer, ..Arguments::default() }
}
