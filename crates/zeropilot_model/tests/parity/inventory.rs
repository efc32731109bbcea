//! The same parameters, modules and ties as the classes of transformers, on random configs.

use serde_json::{Value, json};
use zeropilot_model::{Family, Model, Weights};
use zeropilot_oracle::{Random, seed, setting};

use crate::generator;
use crate::oracle::{builder, difference, extracted_facts, facts, parameter_difference};

/// How our answer to a config disagrees with the real one, or `None`.
fn disagreement(config: &Value, real: &Value) -> Option<String> {
    let ours = Model::from_config_with(&config.to_string(), Weights::Fresh);
    match (ours, real.get("error")) {
        (Ok(model), None) if model.class() != real["class"] => {
            Some(format!("class {}, real {}", model.class(), real["class"]))
        }
        (Ok(model), None) => difference(&model, real),
        (Ok(_), Some(error)) => Some(format!("transformers refuses: {error} {}", real["message"])),
        (Err(error), None) => Some(format!("we refuse: {error}")),
        (Err(_), Some(_)) => None,
    }
}

#[test]
fn random_configs_give_the_real_parameters() {
    let Some(mut oracle) = builder() else { return };
    let facts = facts();
    let mut random = Random::new(seed());
    let per_family = setting("ZEROPILOT_CONFIGS_PER_FAMILY").unwrap_or(20);
    let mut configs = Vec::new();
    for family in Family::ALL {
        let facts = &facts["families"][family.model_type()];
        for _ in 0..per_family {
            configs.push(generator::config(&mut random, family.model_type(), facts));
        }
    }
    let requests: Vec<Value> = configs.iter().map(|config| json!({"config": config})).collect();
    let answers = oracle.answers(requests);
    let mut wrong = Vec::new();
    for (config, answer) in configs.iter().zip(&answers) {
        if let Some(found) = disagreement(config, answer) {
            wrong.push(format!("{config}\n    {found}"));
        }
    }
    let refused = answers.iter().filter(|answer| answer.get("error").is_some()).count();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        configs.len(),
        wrong[..wrong.len().min(12)].join("\n")
    );
    assert!(refused * 20 < configs.len(), "{refused} of {} configs were refused", configs.len());
}

#[test]
fn the_facts_are_those_of_the_installed_libraries() {
    let Some(extracted) = extracted_facts() else { return };
    assert!(extracted == facts(), "run oracle/extract_model_facts.py again");
}

/// Models with a text model inside, and the family it is of.
const WITH_TEXT: &[(&str, &str, &str)] = &[
    ("gemma3", "Gemma3ForConditionalGeneration", "gemma3_text"),
    ("llama4", "Llama4ForConditionalGeneration", "llama4_text"),
    ("mistral3", "Mistral3ForConditionalGeneration", "mistral"),
    ("qwen2_vl", "Qwen2VLForConditionalGeneration", "qwen2_vl_text"),
    ("qwen2_5_vl", "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl_text"),
];

#[test]
fn the_text_parts_of_models_that_see_are_the_real_ones() {
    let Some(mut oracle) = builder() else { return };
    let facts = facts();
    let mut random = Random::new(seed());
    let mut configs = Vec::new();
    for (outer, class, family) in WITH_TEXT {
        for _ in 0..setting("ZEROPILOT_CONFIGS_PER_FAMILY").unwrap_or(20) / 5 {
            let mut text = generator::config(&mut random, family, &facts["families"][family]);
            for key in ["architectures", "model_type", "head_dim", "id2label", "num_labels"] {
                text.as_object_mut().expect("an object").remove(key);
            }
            let mut whole =
                json!({"model_type": outer, "architectures": [class], "text_config": text});
            if random.chance(60) {
                whole["tie_word_embeddings"] = json!(random.chance(50));
            }
            configs.push(whole);
        }
    }
    let request = |config| json!({"config": config, "text_part": true});
    let answers = oracle.answers(configs.iter().map(request).collect());
    for (config, real) in configs.iter().zip(&answers) {
        assert_eq!(real.get("error"), None, "{config} {real}");
        let ours = Model::from_config_with(&config.to_string(), Weights::Fresh).expect("a model");
        let found = parameter_difference(&ours, real);
        assert_eq!(found, None, "{config}");
    }
}
