//! The same adapters and the same trainable parameters as `peft.get_peft_model` gives.

use serde_json::{Map, Value, json};
use zeropilot_model::lora::{Lora, LoraError, Targets, Task, TrainedBiases};
use zeropilot_model::{Family, Model, Weights};
use zeropilot_oracle::{Random, seed, setting};

use crate::generator;
use crate::oracle::{builder, difference, facts};

/// Names of modules that many families have, and some that none has.
const NAMES: &[&str] = &[
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "gate_proj",
    "up_proj",
    "down_proj",
    "query_key_value",
    "dense",
    "self_attn.q_proj",
    "layers.0.self_attn.v_proj",
    "c_attn",
    "c_proj",
    "mlp.c_proj",
    "fc1",
    "query",
    "q",
    "v",
    "wo",
    "Wqkv",
    "lm_head",
    "embed_tokens",
    "gate",
    "w1",
    "w2",
    "w3",
    "router",
    "qkv_proj",
    "gate_up_proj",
    "conv1",
    "nothing",
    "mlp",
    "wte",
    "score",
    "shared_expert_gate",
    "qkv",
    "proj",
    "out_proj",
    "linear_1",
    "linear_fc2",
    "fc2",
    "patch_embedding",
    "position_embedding",
    "multi_modal_projector",
];

const SAVED: &[&str] = &[
    "embed_tokens",
    "lm_head",
    "norm",
    "model.norm",
    "wte",
    "ln_f",
    "score",
    "nothing",
    "layers.0.input_layernorm",
    "multi_modal_projector",
    "merger",
];

fn some(random: &mut Random, names: &[&str], most: u64) -> Vec<String> {
    let count = random.between(1, most);
    let mut chosen: Vec<String> = (0..count).map(|_| (*random.pick(names)).to_owned()).collect();
    chosen.sort();
    chosen.dedup();
    chosen
}

fn draw(random: &mut Random, classifier: bool) -> (Lora, Value) {
    let mut lora = Lora::new(random.between(1, 9));
    let mut arguments = Map::new();
    arguments.insert("r".to_owned(), json!(lora.rank));
    match random.between(0, 3) {
        0 => {}
        1 => {
            lora = lora.on_all_linear();
            arguments.insert("target_modules".to_owned(), json!("all-linear"));
        }
        _ => {
            let names = some(random, NAMES, 5);
            arguments.insert("target_modules".to_owned(), json!(names));
            lora.targets = Targets::Names(names);
        }
    }
    if random.chance(30) {
        lora.modules_to_save = some(random, SAVED, 2);
        arguments.insert("modules_to_save".to_owned(), json!(lora.modules_to_save));
    }
    let (bias, word) = *random.pick(&[
        (TrainedBiases::None, "none"),
        (TrainedBiases::All, "all"),
        (TrainedBiases::LoraOnly, "lora_only"),
    ]);
    lora.bias = bias;
    arguments.insert("bias".to_owned(), json!(word));
    if random.chance(15) {
        lora.dora = true;
        arguments.insert("use_dora".to_owned(), json!(true));
    }
    if random.chance(15) {
        lora.dropout = true;
        arguments.insert("lora_dropout".to_owned(), json!(0.1));
    }
    if random.chance(15) {
        lora.target_parameters = vec!["experts.down_proj".to_owned()];
        arguments.insert("target_parameters".to_owned(), json!(lora.target_parameters));
    }
    if classifier {
        lora.task = Task::SequenceClassification;
        arguments.insert("task_type".to_owned(), json!("SEQ_CLS"));
    }
    (lora, Value::Object(arguments))
}

fn disagreement(config: &Value, lora: &Lora, real: &Value) -> Option<String> {
    let model = match Model::from_config_with(&config.to_string(), Weights::Fresh) {
        Ok(model) => model,
        Err(error) => return real.get("error").is_none().then(|| format!("we refuse: {error}")),
    };
    match (lora.apply(&model), real.get("error")) {
        (Ok(adapted), None) => difference(&adapted, real),
        (Ok(_), Some(error)) => Some(format!("PEFT refuses: {error} {}", real["message"])),
        (Err(LoraError::SavedTwice { .. }), _) | (Err(_), Some(_)) => None,
        (Err(error), None) => Some(format!("we refuse: {error}")),
    }
}

#[test]
fn random_adapters_are_those_of_peft() {
    let Some(mut oracle) = builder() else { return };
    let facts = facts();
    let mut random = Random::new(seed());
    let per_family = setting("ZEROPILOT_ADAPTERS_PER_FAMILY").unwrap_or(6);
    let mut cases = Vec::new();
    for family in Family::ALL {
        for _ in 0..per_family {
            let config = generator::config(&mut random, family.model_type(), &facts);
            let first = config["architectures"][0].as_str().unwrap_or_default();
            let classifier = first.ends_with("ForSequenceClassification");
            let (lora, arguments) = draw(&mut random, classifier);
            cases.push((config, lora, arguments));
        }
    }
    let requests: Vec<Value> = cases
        .iter()
        .map(|(config, _, arguments)| json!({"config": config, "lora": arguments}))
        .collect();
    let answers = oracle.answers(requests);
    let mut wrong = Vec::new();
    for ((config, lora, arguments), answer) in cases.iter().zip(&answers) {
        if let Some(found) = disagreement(config, lora, answer) {
            wrong.push(format!("{config}\n  {arguments}\n    {found}"));
        }
    }
    let adapted = answers.iter().filter(|answer| answer.get("error").is_none()).count();
    let shown = wrong[..wrong.len().min(12)].join("\n");
    assert!(wrong.is_empty(), "{} of {} ({adapted} adapted):\n{shown}", wrong.len(), cases.len());
    assert!(adapted * 3 > cases.len(), "only {adapted} of {} were adapted", cases.len());
}

/// RoBERTa's head ties the bias of its decoder to its own, and keeps doing so in the copy that is trained.
#[test]
fn a_saved_copy_keeps_the_ties_inside_it() {
    let Some(mut oracle) = builder() else { return };
    let config = json!({
        "model_type": "roberta", "architectures": ["RobertaForMaskedLM"], "num_hidden_layers": 1,
        "vocab_size": 1000, "tie_word_embeddings": true,
    });
    let mut lora = Lora::new(4).on_all_linear();
    lora.modules_to_save = vec!["lm_head".to_owned()];
    let arguments = json!({"r": 4, "target_modules": "all-linear", "modules_to_save": ["lm_head"]});
    let answers = oracle.answers(vec![json!({"config": config, "lora": arguments})]);
    assert_eq!(disagreement(&config, &lora, &answers[0]), None);
}
