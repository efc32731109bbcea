//! The same parameters, modules and ties as the classes of transformers, on random configs.

use serde_json::{Value, json};
use zeropilot_model::quantization::QuantizedBase;
use zeropilot_model::{Family, Model, Weights};
use zeropilot_oracle::{Random, seed, setting};

use crate::generator;
use crate::oracle::{builder, difference, extracted_facts, facts};

/// How our answer to a config disagrees with the real one, or `None`.
fn disagreement(config: &Value, real: &Value) -> Option<String> {
    let ours = Model::from_config_with(&config.to_string(), Weights::Fresh);
    match (ours, real.get("error")) {
        (Ok(model), None) if model.class() != real["class"] => {
            Some(format!("class {}, real {}", model.class(), real["class"]))
        }
        (Ok(model), None) => {
            difference(&model, real).or_else(|| quantized_difference(&model, real))
        }
        (Ok(_), Some(error)) => Some(format!("transformers refuses: {error} {}", real["message"])),
        (Err(error), None) => Some(format!("we refuse: {error}")),
        (Err(_), Some(_)) => None,
    }
}

/// What `load_in_4bit` would replace.
fn quantized_difference(model: &Model, real: &Value) -> Option<String> {
    let base = QuantizedBase::nf4();
    let ours: Vec<String> = model
        .parameters()
        .filter(|entry| base.includes(model, entry))
        .map(|entry| entry.module_name().to_owned())
        .collect();
    let real: Vec<&str> = real["quantized"].as_array()?.iter().filter_map(Value::as_str).collect();
    let longest = ours.len().max(real.len());
    let index = (0..longest).find(|i| ours.get(*i).map(String::as_str) != real.get(*i).copied())?;
    Some(format!("quantized {index}: ours {:?}, real {:?}", ours.get(index), real.get(index)))
}

#[test]
fn random_configs_give_the_real_parameters() {
    let Some(mut oracle) = builder() else { return };
    let facts = facts();
    let mut random = Random::new(seed());
    let per_family = setting("ZEROPILOT_CONFIGS_PER_FAMILY").unwrap_or(20);
    let mut configs = Vec::new();
    for family in Family::ALL {
        for _ in 0..per_family {
            configs.push(generator::config(&mut random, family.model_type(), &facts));
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
    let is_refused = |answer: &&Value| answer.get("error").is_some();
    let refused = answers.iter().filter(is_refused).count();
    for (family, answers) in
        Family::ALL.iter().zip(answers.chunks(configs.len() / Family::ALL.len()))
    {
        let refused = answers.iter().filter(is_refused).count();
        assert!(refused * 2 < answers.len(), "{family:?}: {refused} configs were refused");
    }
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
