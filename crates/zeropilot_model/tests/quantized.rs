//! Quantized models as bitsandbytes made them, to the byte.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may stop and tell")]

use serde_json::Value;
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;
use zeropilot_model::quantization::QuantizedBase;

const RECORDED: &str = include_str!("../../../knowledge/measured/quantized.json");

fn sum(object: &Value, keys: impl Fn(&str) -> bool) -> u64 {
    let entries = object.as_object().unwrap().iter();
    entries.filter(|(key, _)| keys(key)).map(|(_, bytes)| bytes.as_u64().unwrap()).sum()
}

/// Quantized matrices, their elements, packed bytes, bytes beside those, and elements that stay.
fn recorded(case: &Value) -> [u64; 5] {
    let quantized = &case["quantized"];
    let bytes = &quantized["bytes"];
    [
        quantized["matrices"].as_u64().unwrap(),
        quantized["elements"].as_u64().unwrap(),
        sum(bytes, |key| key == "packed"),
        sum(bytes, |key| key != "packed"),
        sum(&case["kept"]["elements"], |_| true),
    ]
}

fn ours(case: &Value, model: &Model, base: &QuantizedBase) -> [u64; 5] {
    let matrices = model.parameters().filter(|entry| base.includes(model, entry)).count() as u64;
    let size = base.size(model).unwrap();
    let adapters = model.elements().0 - case["elements"].as_u64().unwrap();
    let kept = size.kept.0 - adapters;
    [matrices, size.quantized.0, size.stored.parameter.0, size.stored.beside.0, kept]
}

#[test]
fn quantized_models_take_what_bitsandbytes_made_of_them() {
    let file: Value = serde_json::from_str(RECORDED).unwrap();
    let cases = file["cases"].as_array().unwrap();
    let mut families = std::collections::BTreeSet::new();
    let (mut different, mut refused) = (Vec::new(), Vec::new());
    for case in cases {
        let mut config = case["hf_config"].clone();
        config["quantization_config"] = case["quantization"].clone();
        let model = match Model::from_config(&config.to_string()) {
            Ok(model) => model,
            Err(error) => {
                refused.push(format!("{}: {error}", case["name"]));
                continue;
            }
        };
        families.insert(config["model_type"].as_str().unwrap().to_owned());
        let base = model.quantized_base().unwrap().clone();
        let targets = case["lora"]["target_modules"].as_array().into_iter().flatten();
        let targets: Vec<&str> = targets.filter_map(Value::as_str).collect();
        let models = if targets.is_empty() {
            vec![model]
        } else {
            let adapted = Lora::new(4).on(&targets).apply(&model).unwrap();
            vec![model, adapted]
        };
        for model in &models {
            let (ours, theirs) = (ours(case, model, &base), recorded(case));
            if ours != theirs {
                different.push(format!("{}: ours {ours:?}, recorded {theirs:?}", case["name"]));
            }
        }
    }
    println!("{} models of {} types; refused: {refused:?}", cases.len(), families.len());
    assert!(different.is_empty(), "{}", different.join("\n"));
    assert!(cases.len() >= 90 && families.len() >= 30);
    // BART, and a BERT that classifies tokens.
    assert_eq!(refused.len(), 2);
}
