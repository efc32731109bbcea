//! Random questions: a model of the catalogue, a recipe, a config and a rank.
#![allow(dead_code, reason = "each test file uses a part of it")]

use serde_json::{Map, Value, json};
use zeropilot_config::resolve::{Circumstances, ResolvedConfig, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::settings::Zero;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::catalogue::{self, Entry};
use zeropilot_model::lora::Lora;
use zeropilot_oracle::Random;
use zeropilot_step::lower::{Conditions, Lowered, Method, Recipe};
use zeropilot_step::memory::Counting;
use zeropilot_step::tape::{Accounting, AttentionForm, Kernels, Options};
use zeropilot_step::zero::Backend;

/// Numbers for a question. Tests name questions by their seed, so this stays as it is.
pub(crate) fn dice(seed: u64) -> Random {
    Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed)
}

/// Small and large numbers equally often.
fn scale(dice: &mut Random, low: u32, high: u32) -> u64 {
    let digits = low + dice.below((high - low) as usize) as u32;
    let base = 10_u64.pow(digits);
    dice.between(base, 10 * base - 1)
}

/// One question.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) entry: &'static Entry,
    pub(crate) recipe: Recipe,
    /// Parts of the names of the parameters that are trained; all if there are none.
    pub(crate) trained: Vec<&'static str>,
    pub(crate) config: Value,
    pub(crate) micro_batch: u64,
    pub(crate) options: Options,
    pub(crate) world: u64,
    pub(crate) rank: u64,
    pub(crate) counting: Counting,
}

impl Question {
    pub(crate) fn new(seed: u64) -> Self {
        let mut dice = dice(seed);
        let entry = dice.pick(catalogue::entries());
        let world = *dice.pick(&[1, 2, 3, 4, 8, 8, 16, 64, 1000, 100_000]);
        let micro_batch = dice.between(1, 4);
        Self {
            entry,
            recipe: recipe(&mut dice),
            trained: trained(&mut dice),
            config: config(&mut dice, world, micro_batch),
            micro_batch,
            options: options(&mut dice),
            world,
            rank: if dice.one_in(2) { 0 } else { dice.between(0, world - 1) },
            counting: Counting {
                backend: *dice.pick(&[Backend::Nccl, Backend::Gloo]),
                tensors_only: dice.one_in(4),
            },
        }
    }

    pub(crate) fn resolved(&self) -> Option<ResolvedConfig> {
        let text = self.config.to_string();
        let document = parse_json(&text).unwrap();
        let circumstances = Circumstances::new(EngineVersion::NEWEST, self.world as usize);
        resolve(document.root(), circumstances).resolved
    }

    /// Answers the question, unless the config or the recipe is refused.
    pub(crate) fn ask<T>(
        &self,
        answer: impl FnOnce(&Lowered, &ResolvedConfig, &Zero) -> T,
    ) -> Option<T> {
        let resolved = self.resolved()?;
        let zero = resolved.zero();
        let conditions = Conditions::of(
            &resolved.zero(),
            resolved.precision().element_size(),
            self.micro_batch,
            self.options,
        );
        let mut model = self.entry.model().unwrap();
        if !self.trained.is_empty() {
            model = model.train_only(&self.trained);
        }
        let lowered = Lowered::new(&model, &self.recipe, &conditions).ok()?;
        Some(answer(&lowered, &resolved, &zero))
    }
}

fn options(dice: &mut Random) -> Options {
    Options {
        accounting: *dice.pick(&[Accounting::Real, Accounting::Recorded]),
        kernels: *dice.pick(&[Kernels::Cpu, Kernels::Cuda]),
        attention: *dice.pick(&[
            AttentionForm::AsModel,
            AttentionForm::Eager,
            AttentionForm::Flash,
        ]),
        ..Options::default()
    }
}

fn recipe(dice: &mut Random) -> Recipe {
    let lora = if dice.one_in(2) { Lora::new(8) } else { Lora::new(16).on_all_linear() };
    Recipe {
        method: match dice.below(3) {
            0 => Method::Lora(lora),
            _ => Method::Full,
        },
        checkpointing: dice.one_in(2),
        ..Recipe::full(*dice.pick(&[7, 128, 1000, 4096]))
    }
}

fn trained(dice: &mut Random) -> Vec<&'static str> {
    let some: [&[&str]; 7] = [
        &[],
        &[],
        &[],
        &["norm"],
        &["layers.3.", "h.3."],
        &["attn", "attention"],
        &["head", "embed"],
    ];
    dice.pick(&some).to_vec()
}

fn config(dice: &mut Random, world: u64, micro_batch: u64) -> Value {
    let stage = *dice.pick(&[0, 1, 2, 3, 3, 3]);
    let mut zero = Map::from_iter([("stage".to_owned(), json!(stage))]);
    let mut set = |key: &str, value: Value| drop(zero.insert(key.to_owned(), value));
    for key in [
        "contiguous_gradients",
        "overlap_comm",
        "reduce_scatter",
        "round_robin_gradients",
        "use_multi_rank_bucket_allreduce",
    ] {
        if dice.one_in(3) {
            set(key, json!(dice.one_in(2)));
        }
    }
    for (key, low, high) in [
        ("reduce_bucket_size", 3, 10),
        ("sub_group_size", 4, 13),
        ("stage3_prefetch_bucket_size", 3, 11),
        ("stage3_param_persistence_threshold", 2, 8),
        ("stage3_model_persistence_threshold", 4, 10),
        ("stage3_max_live_parameters", 5, 12),
        ("stage3_max_reuse_distance", 4, 12),
    ] {
        if dice.one_in(2) {
            let value = if dice.one_in(12) { 0 } else { scale(dice, low, high) };
            set(key, json!(value));
        }
    }
    if dice.one_in(3) && stage > 0 {
        let ratio = if stage == 3 { *dice.pick(&[1.0, 0.5, 0.3]) } else { 1.0 };
        set(
            "offload_optimizer",
            json!({ "device": "cpu", "pin_memory": dice.one_in(2), "ratio": ratio }),
        );
    }
    if stage == 3 {
        if dice.one_in(4) {
            set("offload_param", json!({ "device": "cpu", "pin_memory": dice.one_in(2) }));
        }
        if dice.one_in(4) && world.is_multiple_of(2) {
            set("zero_hpz_partition_size", json!(*dice.pick(&[2, 8_u64.min(world)])));
        }
        if dice.one_in(4) {
            set("memory_efficient_linear", json!(false));
        }
    }
    let mut config = json!({
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": *dice.pick(&[1, 1, 2, 3, 4, 16]),
        "zero_optimization": zero,
    });
    match dice.below(4) {
        0 => {}
        1 => config["fp16"] = json!({ "enabled": true }),
        _ => config["bf16"] = json!({ "enabled": true }),
    }
    if dice.one_in(4) {
        config["data_types"] = json!({ "grad_accum_dtype": *dice.pick(&["fp32", "bf16"]) });
    }
    if dice.one_in(5) {
        config["communication_data_type"] = json!(*dice.pick(&["fp32", "bf16", "fp16"]));
    }
    if dice.one_in(2) {
        let name = *dice.pick(&["AdamW", "Adam", "Lion", "Adagrad", "SGD"]);
        let torch = name.starts_with("Adam") && dice.one_in(3);
        let parameters = if torch { json!({ "torch_adam": true }) } else { json!({}) };
        config["optimizer"] = json!({ "type": name, "params": parameters });
    }
    config
}
