//! Measured runs of the real engine, and the Llama-shaped models they were measured on.
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::Value;
use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Stage;
use zeropilot_config::syntax::parse_json;
use zeropilot_step::family::{Family, Setup, build};
use zeropilot_step::head::LossHead;
use zeropilot_step::memory::{MicroStepPeaks, steady_step};
use zeropilot_step::micro_step::{MicroStep, modules};
use zeropilot_step::shape::{
    Batch, LongContext, Shape as Dimensions, Switches, TensorParallel, Tower, Training,
};
use zeropilot_step::tape::{Accounting, Options};
use zeropilot_step::zero::{Backend, BaseOptimizer, Engine, Loading, Parameter, Run};
use zeropilot_units::{ElementSize, Elements};

const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/measured/");
pub(crate) fn cases() -> Vec<Value> {
    measured("zero-memory-cases.json")
}

fn measured(file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{MEASURED}{file}")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The micro steps of a steady step of the run a case measured.
pub(crate) fn micro_steps(case: &Value) -> Vec<MicroStepPeaks> {
    let model = Shape::of(case);
    let setup = Setup {
        family: Family::Llama,
        shape: model.dimensions(),
        tower: Tower::None,
        switches: Switches {
            tied: Some(model.tied),
            checkpointing: case["checkpointing"].as_bool().unwrap(),
            ..Switches::NONE
        },
        training: Training {
            element_bytes: if case["config"]["bf16"]["enabled"] == true
                || case["config"]["fp16"]["enabled"] == true
            {
                2
            } else {
                4
            },
            quantized: None,
            lora: None,
            leaves: std::collections::BTreeSet::new(),
            frozen: names_of_frozen(case),
        },
        batch: Batch {
            sequences: case["config"]["train_micro_batch_size_per_gpu"].as_u64().unwrap(),
            length: case["seq"].as_u64().unwrap(),
            target_length: 0,
        },
        head: LossHead::Model,
        completion: None,
        long_context: LongContext::NONE,
        tensor: TensorParallel::NONE,
        keeps_cache: false,
        keeps_hidden: false,
    };
    let program = build(&setup);
    let modules = modules(program.model());
    with_run(case, |run| {
        let sharded = run.zero.stage == Stage::Three;
        let options = Options {
            accounting: Accounting::Recorded,
            module_events: sharded,
            zero3_linear: sharded,
            ..Options::default()
        };
        let micro_step = MicroStep::of(&*program, options);
        steady_step(run, program.model(), &modules, &micro_step, &[], Backend::Gloo)
    })
}

/// Parameters that `trainable_only` does not name.
fn names_of_frozen(case: &Value) -> std::collections::BTreeSet<String> {
    let Some(fragments) = case["trainable_only"].as_array() else { return Default::default() };
    let is_named = |name: &str| {
        fragments.iter().filter_map(Value::as_str).any(|fragment| name.contains(fragment))
    };
    let names = Shape::of(case).parameters().into_iter().map(|(name, _)| name);
    names.filter(|name| !is_named(name)).collect()
}

/// Tokens of a micro batch.
pub(crate) fn tokens(case: &Value) -> u64 {
    case["config"]["train_micro_batch_size_per_gpu"].as_u64().unwrap()
        * case["seq"].as_u64().unwrap()
}

/// Shape of a Llama.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) head: u64,
    pub(crate) intermediate: u64,
    pub(crate) vocabulary: u64,
    pub(crate) layers: u64,
    pub(crate) tied: bool,
}

impl Shape {
    pub(crate) fn of(case: &Value) -> Self {
        let model = &case["model"];
        let number = |key: &str| model[key].as_u64();
        let (hidden, heads) = (number("h").unwrap(), number("a").unwrap());
        Self {
            hidden,
            heads,
            kv_heads: number("k").unwrap(),
            head: number("d").unwrap_or(hidden / heads),
            intermediate: number("i").unwrap(),
            vocabulary: number("v").unwrap(),
            layers: number("L").unwrap(),
            tied: model["tie"].as_bool().unwrap_or(false),
        }
    }

    fn dimensions(self) -> Dimensions {
        Dimensions {
            hidden: self.hidden,
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_width: self.head,
            intermediate: self.intermediate,
            vocabulary: self.vocabulary,
            layers: self.layers,
            ..Dimensions::default()
        }
    }

    /// Names and sizes of its parameters.
    pub(crate) fn parameters(self) -> Vec<(String, u64)> {
        let Self {
            hidden: h, heads: a, kv_heads: k, head: d, intermediate: i, vocabulary: v, ..
        } = self;
        let mut parameters = vec![("model.embed_tokens.weight".to_owned(), v * h)];
        for layer in 0..self.layers {
            let mut add = |name: &str, size: u64| {
                parameters.push((format!("model.layers.{layer}.{name}.weight"), size))
            };
            add("self_attn.q_proj", a * d * h);
            add("self_attn.k_proj", k * d * h);
            add("self_attn.v_proj", k * d * h);
            add("self_attn.o_proj", a * d * h);
            add("mlp.gate_proj", i * h);
            add("mlp.up_proj", i * h);
            add("mlp.down_proj", i * h);
            add("input_layernorm", h);
            add("post_attention_layernorm", h);
        }
        parameters.push(("model.norm.weight".to_owned(), h));
        if !self.tied {
            parameters.push(("lm_head.weight".to_owned(), v * h));
        }
        parameters
    }
}

/// Backward reaches a Llama's modules in this order, layer by layer from the last.
fn gradient_order(names: &[(String, u64)], parameters: &[Parameter]) -> Vec<usize> {
    let layer = |name: &str| name.split('.').nth(2).and_then(|part| part.parse::<usize>().ok());
    let place = |name: &str| {
        let order = [
            "down",
            "up",
            "gate",
            "post_attention",
            "o_proj",
            "v_proj",
            "k_proj",
            "q_proj",
            "input_layernorm",
        ];
        order.iter().position(|part| name.contains(part)).unwrap_or(0)
    };
    let mut order: Vec<usize> =
        (0..names.len()).filter(|&index| parameters[index].trainable).collect();
    order.sort_by_key(|&index| {
        let name = &names[index].0;
        match layer(name) {
            Some(layer) => (1, usize::MAX - layer, place(name)),
            None if name.contains("lm_head") => (0, 0, 0),
            None if name.contains("norm") => (0, 1, 0),
            None => (2, 0, 0),
        }
    });
    order
}

/// Answers a question about the run a case measured.
pub(crate) fn with_run<T>(case: &Value, answer: impl Fn(&Run<'_>) -> T) -> T {
    let text = case["config"].to_string();
    let document = parse_json(&text).unwrap();
    let world = case["world"].as_u64().unwrap();
    let resolution =
        resolve(document.root(), Circumstances::new(EngineVersion::NEWEST, world as usize));
    let resolved =
        resolution.resolved.unwrap_or_else(|| panic!("{text}: {:?}", resolution.problems));
    let zero = resolved.zero();
    let trainable_only: Option<Vec<&str>> = case["trainable_only"]
        .as_array()
        .map(|names| names.iter().filter_map(Value::as_str).collect());
    let two_groups = case["two_groups"].as_bool().unwrap();
    let names = Shape::of(case).parameters();
    let parameters: Vec<Parameter> = names
        .iter()
        .map(|(name, size)| Parameter {
            elements: Elements(*size),
            parts: 1,
            element: None,
            trainable: trainable_only
                .as_ref()
                .is_none_or(|names| names.iter().any(|part| name.contains(part))),
            group: usize::from(two_groups && name.contains("norm")),
        })
        .collect();
    let torch_adam = case["config"]["optimizer"]["params"]["torch_adam"].as_bool().unwrap_or(false);
    let optimizer = match (&zero.offload_optimizer, torch_adam) {
        (Some(_), _) => BaseOptimizer::CpuAdam,
        (None, true) => BaseOptimizer::TorchAdam,
        (None, false) => BaseOptimizer::FusedAdam,
    };
    let gradient_order = gradient_order(&names, &parameters);
    answer(&Run {
        parameters: &parameters,
        gradient_order: &gradient_order,
        engine: Engine::DeepSpeed,
        zero: &zero,
        precision: resolved.precision(),
        accumulation_type: resolved.gradient_accumulation_type(),
        communication_type: resolved.communication_type(),
        sequence_ranks: 1,
        tensor_ranks: 1,
        tensor_rank: 0,
        optimizer,
        accumulation_steps: resolved.batch().unwrap().accumulation,
        version: resolved.version(),
        world,
        rank: case["rank"].as_u64().unwrap_or(0),
    })
}

/// How the model of a case was built.
pub(crate) fn loading(case: &Value) -> Loading {
    match case["zero_init"].as_bool() {
        Some(true) if case["config"]["zero_optimization"]["stage"] == 3 => Loading::Partitioned,
        _ if case["name"].as_str().is_some_and(|name| name.contains("bf16base")) => {
            Loading::Whole(ElementSize::Two)
        }
        _ => Loading::Whole(ElementSize::Four),
    }
}
