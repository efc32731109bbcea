//! The parameters of every program are those of the real model: names, sizes, order.

mod common;

use serde_json::{Value, json};
use zeropilot_step::family::build;

#[test]
fn parameters_equal_named_parameters() {
    let mut misses = Vec::new();
    for case in common::cases("parameters.json") {
        let setup = common::setup(&case).expect("a family");
        let program = build(&setup);
        let model = program.model();
        let ours: Vec<Value> = model
            .parameters
            .iter()
            .map(|info| {
                let parameter = info.parameter;
                json!([
                    model.parameter_name(parameter.id),
                    parameter.elements,
                    parameter.is_trainable
                ])
            })
            .collect();
        let theirs = case["parameters"].as_array().expect("parameters");
        if &ours != theirs {
            let place = ours.iter().zip(theirs).position(|(a, b)| a != b);
            let at = place.unwrap_or(ours.len().min(theirs.len()));
            misses.push(format!(
                "{}: {} ours, {} theirs; at {at}: {:?} instead of {:?}",
                case["name"],
                ours.len(),
                theirs.len(),
                ours.get(at),
                theirs.get(at)
            ));
        }
    }
    assert!(misses.is_empty(), "{} misses:\n{}", misses.len(), misses.join("\n"));
}
