//! Reading measured cases, and the ledger the tests read peaks from.
#![allow(dead_code, unreachable_pub)]

use serde_json::Value;
use zeropilot_step::family::{Family, Setup};
use zeropilot_step::head::LossHead;
use zeropilot_step::model::ParameterId;
use zeropilot_step::shape::{
    Batch, LongContext, Lora, LoraTargets, Shape, Switches, TensorParallel, Tower, Training,
};
use zeropilot_step::tape::{Listener, Mark, Storage, StorageId};
use zeropilot_step::zero::Loading;
use zeropilot_units::ElementSize;

/// The cases of one file under `knowledge/measured`.
pub fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../knowledge/measured/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut value: Value = serde_json::from_str(&text).expect("measured cases are JSON");
    match value["cases"].take() {
        Value::Array(cases) => cases,
        other => panic!("no cases in {file}: {other}"),
    }
}

pub fn number(case: &Value, key: &str) -> u64 {
    case[key].as_u64().unwrap_or(0)
}

pub fn family(name: &str) -> Option<Family> {
    Family::ALL.into_iter().find(|family| family.name() == name)
}

/// The setup of a case; `None` while its family has no program.
pub fn setup(case: &Value) -> Option<Setup> {
    let family = family(case["family"].as_str()?)?;
    let length = number(case, "seq");
    let config = &case["config"];
    let sequences = case["batch"]
        .as_u64()
        .or_else(|| config["train_micro_batch_size_per_gpu"].as_u64())
        .expect("a batch size");
    let element_bytes = match case["dtype"].as_str() {
        Some("bfloat16" | "bf16" | "float16" | "fp16") => 2,
        Some(_) => 4,
        None => {
            let enabled = |key: &str| config[key]["enabled"].as_bool() == Some(true);
            if enabled("bf16") || enabled("fp16") { 2 } else { 4 }
        }
    };
    let setup = Setup {
        family,
        shape: shape(family, &case["shape"]),
        tower: Tower::None,
        switches: switches(case),
        training: training(case, element_bytes),
        batch: Batch {
            sequences,
            length,
            target_length: case["target_seq"].as_u64().unwrap_or(length),
        },
        head: LossHead::Model,
        completion: None,
        long_context: LongContext::NONE,
        tensor: TensorParallel::NONE,
        keeps_cache: false,
        keeps_hidden: false,
    };
    Some(trained_only(setup, case))
}

/// The setup with everything frozen that `trainable_only` does not name.
pub fn trained_only(mut setup: Setup, case: &Value) -> Setup {
    let Some(fragments) = case["trainable_only"].as_array() else { return setup };
    let is_named = |name: &str| {
        fragments.iter().filter_map(Value::as_str).any(|fragment| name.contains(fragment))
    };
    let program = zeropilot_step::family::build(&setup);
    let model = program.model();
    let names = model.parameters.iter().map(|info| model.parameter_name(info.parameter.id));
    setup.training.frozen = names.filter(|name| !is_named(name)).collect();
    setup
}

fn shape(family: Family, s: &Value) -> Shape {
    let hidden = number(s, "h");
    let heads = number(s, "a");
    let or = |key: &str, default: u64| s[key].as_u64().unwrap_or(default);
    let expert_intermediate = or("mi", or("i", 0));
    let kv_default = if family == Family::Falcon { 1 } else { heads };
    Shape {
        hidden,
        heads,
        kv_heads: or("k", kv_default),
        head_width: or("d", hidden / heads),
        intermediate: or("i", 4 * hidden),
        vocabulary: number(s, "v"),
        layers: number(s, "L"),
        positions: or("npos", 0),
        experts: or("E", 0),
        experts_per_token: or("K", 0),
        expert_intermediate,
        shared_intermediate: or("si", or("ns", 0) * expert_intermediate),
        shared_experts: or("ns", 0),
        query_latent: or("ql", 0),
        kv_latent: or("kl", 0),
        nope_width: or("dn", 0),
        rope_width: or("dr", 0),
        value_width: or("dv", 0),
        dense_layers: or("fd", 0),
        expert_groups: or("ng", 0),
        groups_per_token: or("tg", 0),
    }
}

fn switches(case: &Value) -> Switches {
    let overrides = &case["config_overrides"];
    let family = case["family"].as_str().unwrap_or_default();
    // What the library's configuration says when a case does not.
    let default =
        if matches!(family, "gpt2" | "opt" | "t5" | "bert" | "bertcls") { 0.1 } else { 0.0 };
    let on = |key: &str| overrides[key].as_f64().unwrap_or(default) > 0.0;
    let (embedding, residual, attention) = match family {
        "gpt2" => (on("embd_pdrop"), on("resid_pdrop"), on("attn_pdrop")),
        "opt" => (false, on("dropout"), false),
        "t5" => (on("dropout_rate"), on("dropout_rate"), on("dropout_rate")),
        "bert" | "bertcls" => (
            on("hidden_dropout_prob"),
            on("hidden_dropout_prob"),
            on("attention_probs_dropout_prob"),
        ),
        _ => (false, false, false),
    };
    Switches {
        embedding_dropout: embedding,
        residual_dropout: residual,
        attention_dropout: attention,
        sliding_window: overrides["sliding_window"].as_u64(),
        tied: overrides["tie_word_embeddings"].as_bool(),
        is_gated: false,
        normalise_top_k: overrides["norm_topk_prob"].as_bool(),
        checkpointing: case["checkpointing"].as_bool().unwrap_or(false),
        input_gradients: case["input_require_grads"].as_bool().unwrap_or(false),
    }
}

fn training(case: &Value, element_bytes: u8) -> Training {
    let strings = |value: &Value| -> Option<Vec<String>> {
        Some(value.as_array()?.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect())
    };
    let lora = &case["lora"];
    let adapter_bytes = case["adapter_element_bytes"].as_u64().unwrap_or(u64::from(element_bytes));
    Training {
        element_bytes,
        quantized: None,
        lora: lora.is_object().then(|| Lora {
            targets: strings(&lora["targets"]).map_or(LoraTargets::AllLinear, LoraTargets::Named),
            rank: number(lora, "r"),
            has_dropout: lora["dropout"].as_f64().unwrap_or(0.0) > 0.0,
            trained_modules: strings(&lora["save"]).unwrap_or_default(),
            folds: Vec::new(),
            element_bytes: u8::try_from(adapter_bytes).expect("a small element"),
        }),
        leaves: leaves(case),
        frozen: std::collections::BTreeSet::new(),
    }
}

/// The blocks that DeepSpeed takes for leaves by default.
fn leaves(case: &Value) -> std::collections::BTreeSet<String> {
    let is_listed = matches!(case["family"].as_str(), Some("mixtral" | "qwen2_moe" | "qwen3_moe"));
    let blocks = (0..64).map(|layer| format!("model.layers.{layer}.mlp"));
    let adapted = if case["lora"].is_object() { "base_model.model." } else { "" };
    blocks.filter(|_| is_listed).map(|block| format!("{adapted}{block}")).collect()
}

/// Live bytes, and the highest point of each stretch between two marks.
#[derive(Default)]
pub struct Ledger {
    pub live: u64,
    pub highest: u64,
    /// Highest point of the stretch that ended at the mark, and live bytes at it.
    pub stretches: Vec<(Mark, u64, u64)>,
    gradients: std::collections::BTreeSet<ParameterId>,
}

impl Ledger {
    /// Highest point of the stretches up to and including the one that ends at `to`, starting after
    /// the mark `from` (or at the beginning).
    pub fn between(&self, from: Option<Mark>, to: Mark) -> u64 {
        let start = from.map_or(0, |from| 1 + self.position(from));
        self.stretches[start..=self.position(to)].iter().map(|s| s.1).max().unwrap_or(0)
    }

    pub fn at(&self, mark: Mark) -> u64 {
        self.stretches[self.position(mark)].2
    }

    pub fn has(&self, mark: Mark) -> bool {
        self.stretches.iter().any(|stretch| stretch.0 == mark)
    }

    fn position(&self, mark: Mark) -> usize {
        self.stretches.iter().position(|stretch| stretch.0 == mark).expect("the mark")
    }
}

impl Listener for Ledger {
    fn allocate(&mut self, _id: StorageId, storage: Storage) {
        self.live += storage.bytes;
        self.highest = self.highest.max(self.live);
    }

    fn free(&mut self, _id: StorageId, storage: Storage) {
        self.live -= storage.bytes;
    }

    fn gradient(&mut self, parameter: ParameterId, _id: StorageId, _storage: Storage) {
        // The first gradient of a parameter stays; the tests run one micro step.
        assert!(self.gradients.insert(parameter), "one gradient per parameter");
    }

    fn mark(&mut self, mark: Mark) {
        self.stretches.push((mark, self.highest, self.live));
        self.highest = self.live;
    }
}

/// How the model of a case was built.
pub fn loading(case: &Value) -> Loading {
    match case["zero_init"].as_bool() {
        Some(true) if case["config"]["zero_optimization"]["stage"] == 3 => Loading::Partitioned,
        _ if case["name"].as_str().is_some_and(|name| name.contains("bf16base")) => {
            Loading::Whole(ElementSize::Two)
        }
        _ => Loading::Whole(ElementSize::Four),
    }
}
