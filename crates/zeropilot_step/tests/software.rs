//! What the software around a model changes: who keeps the states, autocast, kernels that replace the model's own.
//!
//! Expected bytes are arithmetic from the code of PyTorch, PEFT and Liger; none of this is measured on a GPU by us.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use zeropilot_config::resolve::{Circumstances, resolve};
use zeropilot_config::schema::EngineVersion;
use zeropilot_config::syntax::parse_json;
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;
use zeropilot_step::head::LossHead;
use zeropilot_step::lower::{Conditions, Lowered, Method, Recipe};
use zeropilot_step::memory::{Counting, Prediction};
use zeropilot_step::tape::{Autocast, Kernels, LayerKernels, Options};
use zeropilot_step::zero::{Category, Engine, Place};
use zeropilot_units::{Bytes, ElementSize};

const HIDDEN: u64 = 256;
const INTERMEDIATE: u64 = 640;
const HEADS: u64 = 4;
const VOCABULARY: u64 = 512;
const TOKENS: u64 = 128;

fn model(layers: u64) -> Model {
    let config = format!(
        r#"{{"model_type": "llama", "hidden_size": {HIDDEN}, "intermediate_size": {INTERMEDIATE},
            "num_attention_heads": {HEADS}, "num_key_value_heads": {HEADS}, "num_hidden_layers": {layers},
            "vocab_size": {VOCABULARY}, "tie_word_embeddings": false}}"#
    );
    Model::from_config(&config).unwrap()
}

fn predict(model: &Model, recipe: &Recipe, world: u64) -> Prediction {
    let config = r#"{"train_micro_batch_size_per_gpu": 1, "bf16": {"enabled": true}}"#;
    let document = parse_json(config).unwrap();
    let circumstances = Circumstances::new(EngineVersion::NEWEST, world as usize);
    let resolved = resolve(document.root(), circumstances).resolved.unwrap();
    let zero = resolved.zero();
    let options = Options { kernels: Kernels::Cuda, ..Options::default() };
    let conditions = Conditions::of(&zero, ElementSize::Two, 1, options);
    let lowered = Lowered::new(model, recipe, &conditions).unwrap();
    let rank = lowered.rank(&resolved, &zero, world, 0);
    Prediction::new(&lowered, &rank, Counting::default())
}

/// Of one layer: four square matrices, three of the feed-forward part, two norms; then embedding, head and last norm.
fn parameters(layers: u64) -> u64 {
    let layer = 4 * HIDDEN * HIDDEN + 3 * HIDDEN * INTERMEDIATE + 2 * HIDDEN;
    layers * layer + 2 * VOCABULARY * HIDDEN + HIDDEN
}

#[test]
fn without_deepspeed_everything_has_the_format_of_the_weights() {
    let recipe = Recipe { engine: Engine::PyTorch, ..Recipe::full(TOKENS) };
    let states = predict(&model(2), &recipe, 1).states;
    // Weights, gradients and both moments in bf16.
    let all = states.after_backward.at(Place::Device);
    assert!(all.0.abs_diff(8 * parameters(2)) < 4096, "{all:?}");
    assert_eq!(states.after_step.of(Category::Master), Bytes(0));
    // Buckets of DDP take as much as the gradients.
    let two = predict(&model(2), &recipe, 2).states.after_backward;
    assert_eq!(two.of(Category::ReduceBucket), Bytes(2 * parameters(2)));
}

#[test]
fn adapters_stay_in_32_bits_without_deepspeed() {
    let rank = 8;
    let recipe = Recipe {
        method: Method::Lora(Lora::new(rank).on(&["q_proj"])),
        engine: Engine::PyTorch,
        autocast: Autocast::OutputsInFp32,
        ..Recipe::full(TOKENS)
    };
    let states = predict(&model(2), &recipe, 1).states.after_backward;
    let adapters = 2 * 2 * rank * HIDDEN;
    assert_eq!(states.of(Category::ParameterGradients), Bytes(4 * adapters));
    assert_eq!(states.of(Category::FirstMoment), Bytes(4 * adapters));
    assert_eq!(states.of(Category::FrozenParameters), Bytes(2 * parameters(2)));
}

/// Each adapted projection keeps an own 16-bit copy of its input: PEFT casts it to 32 bits, autocast back.
#[test]
fn autocast_gives_every_adapter_a_copy_of_its_input() {
    let saved = |targets: &[&str], layers| {
        let recipe = Recipe {
            method: Method::Lora(Lora::new(8).on(targets)),
            engine: Engine::PyTorch,
            autocast: Autocast::OutputsInFp32,
            loss: LossHead::Fused,
            ..Recipe::full(TOKENS)
        };
        let prediction = predict(&model(layers), &recipe, 1);
        prediction.micro_steps[0].forward.at_device_peak.of(Category::Activations).0
    };
    let of_layer = |targets: &[&str]| saved(targets, 4) - saved(targets, 3);
    let one_more = of_layer(&["q_proj", "k_proj"]) - of_layer(&["q_proj"]);
    // The copy, the product of rank 8, and the 16-bit casts of both weights.
    let expected = TOKENS * (2 * HIDDEN + 2 * 8) + 2 * 2 * 8 * HIDDEN;
    assert_eq!(one_more, expected);
}

/// Bytes that one layer keeps for backward with Liger's kernels, per token: the inputs of both norms and their outputs,
/// query, key and value, the attention's output, gate, up and their product in 16 bits; a factor for each norm and a
/// log-sum-exp for each head in 32.
#[test]
fn liger_kernels_keep_what_their_code_says() {
    let saved = |layers| {
        let recipe = Recipe {
            layer_kernels: LayerKernels::Liger,
            loss: LossHead::Fused,
            ..Recipe::full(TOKENS)
        };
        let prediction = predict(&model(layers), &recipe, 1);
        prediction.micro_steps[0].forward.at_device_peak.of(Category::Activations).0
    };
    let expected = TOKENS * (2 * (8 * HIDDEN + 3 * INTERMEDIATE) + 4 * (2 + HEADS));
    assert_eq!(saved(4) - saved(3), expected);
}
