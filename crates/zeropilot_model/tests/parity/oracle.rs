//! What transformers and PEFT say of models, and how ours differ from that.

use serde_json::{Value, json};
use zeropilot_model::Model;
use zeropilot_oracle::{Oracle, home, programs, python};

/// What transformers and PEFT know about families.
pub(crate) fn facts() -> Value {
    let path = programs().join("../knowledge/models/families.json");
    serde_json::from_slice(&std::fs::read(path).expect("the facts")).expect("JSON")
}

/// The same, extracted anew, if this machine has them.
pub(crate) fn extracted_facts() -> Option<Value> {
    let program = programs().join("extract_model_facts.py");
    let output = python(&home()?).arg(program).output().expect("the program runs");
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

/// Starts the program that builds models, if this machine has it.
pub(crate) fn builder() -> Option<Oracle> {
    let oracle = Oracle::start(&home()?, "model_inventory.py");
    let (greeting, facts) = (oracle.greeting(), facts());
    for library in ["transformers", "peft"] {
        assert_eq!(greeting[library], facts[library], "the facts are of another version");
    }
    Some(oracle)
}

/// Where a model differs from what the oracle built, or `None`.
pub(crate) fn difference(model: &Model, real: &Value) -> Option<String> {
    let modules: Vec<Value> = model
        .modules()
        .filter(|entry| entry.module.all_names().next().is_some())
        .map(|entry| json!([entry.name, entry.module.class]))
        .collect();
    parameter_difference(model, real)
        .or_else(|| first_difference("module", &modules, real["modules"].as_array()?))
}

fn parameter_difference(model: &Model, real: &Value) -> Option<String> {
    let ours: Vec<Value> = model
        .parameters()
        .map(|entry| json!([entry.name, entry.parameter.shape, entry.parameter.trainable]))
        .collect();
    let mut ties = model.ties();
    let mut real_ties: Vec<Vec<String>> = Vec::new();
    for (first, others) in real["tied"].as_object()? {
        let others = others.as_array()?.iter().filter_map(Value::as_str);
        real_ties.push([first.as_str()].into_iter().chain(others).map(str::to_owned).collect());
    }
    ties.sort();
    real_ties.sort();
    let [ties, real_ties] =
        [ties, real_ties].map(|ties| ties.into_iter().map(Value::from).collect::<Vec<_>>());
    let total: u64 = model.parameters().filter_map(|entry| entry.parameter.elements()).sum();
    let sum = || {
        (total != model.elements().0)
            .then(|| format!("the list has {total} elements, the count {}", model.elements()))
    };
    first_difference("parameter", &ours, real["parameters"].as_array()?)
        .or_else(|| first_difference("tie", &ties, &real_ties))
        .or_else(sum)
}

fn first_difference(what: &str, ours: &[Value], real: &[Value]) -> Option<String> {
    let longest = ours.len().max(real.len());
    let index = (0..longest).find(|index| ours.get(*index) != real.get(*index))?;
    Some(format!("{what} {index}: ours {:?}, real {:?}", ours.get(index), real.get(index)))
}
