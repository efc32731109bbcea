//! Every type of model that transformers has a causal language model for is answered, or refused with a reason.

use serde_json::{Value, json};
use zeropilot_model::{CountedFrom, LiveParameter, Model, Names, Weights};
use zeropilot_oracle::part_of;

use crate::oracle::builder;

fn parameters(real: &Value) -> Vec<LiveParameter> {
    let parameter = |row: &Value| LiveParameter {
        name: row[0].as_str().expect("a name").to_owned(),
        shape: row[1].as_array().expect("a shape").iter().filter_map(Value::as_u64).collect(),
        dtype: None,
        trainable: true,
    };
    real["parameters"].as_array().expect("parameters").iter().map(parameter).collect()
}

/// What is wrong with our answer about one type, or what it is.
fn judged(model_type: &str, real: &Value) -> Result<String, String> {
    let config = real["config"].to_string();
    let live = parameters(real);
    let elements: u64 = live.iter().map(|it| it.shape.iter().product::<u64>()).sum();
    let model = match Model::from_config_with(&config, Weights::Fresh) {
        Ok(model) => model,
        Err(error) => return Ok(format!("refused: {error}")),
    };
    let ours = model.elements().0;
    let counted = Model::from_live(Some(&config), &live).map_err(|error| error.to_string())?;
    if counted.elements().0 != elements {
        return Err(format!("{} elements of {elements} with its tensors", counted.elements()));
    }
    match model.names() {
        Names::Real if ours == elements => Ok("exact".to_owned()),
        Names::Real => Err(format!("{ours} is called exact, but is {elements}")),
        Names::Likeness { of, class, counted, is_language_only } => {
            let says_so = of == model_type && *counted == CountedFrom::Config;
            let what = if *is_language_only { "its language model: " } else { "" };
            let family = model.family();
            let off = 100.0 * (ours as f64 / elements as f64 - 1.0);
            let answer = format!("{what}{class:?} as {family:?}, {off:+.0} % parameters");
            if says_so { Ok(answer) } else { Err(answer) }
        }
        names => Err(format!("{names:?}: {ours} of {elements}")),
    }
}

#[test]
fn any_type_is_answered_or_refused_with_a_reason() {
    let Some(mut oracle) = builder() else { return };
    let listed = oracle.answers(vec![json!({"types": true})]);
    let types = listed[0]["types"].as_array().expect("types");
    let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
    assert!(types.len() > 100, "{listed:?}");
    let types = part_of(types, 6);
    let real = oracle.answers(types.iter().map(|it| json!({"small": it})).collect());
    let mut wrong = Vec::new();
    let mut built = 0;
    for (model_type, real) in types.iter().zip(&real) {
        if real.get("error").is_some() {
            println!("{model_type}: not built: {} {}", real["error"], real["message"]);
            continue;
        }
        built += 1;
        match judged(model_type, real) {
            Ok(answer) => println!("{model_type}: {answer}"),
            Err(found) => wrong.push(format!("{model_type}: {found}\n    {}", real["config"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {built}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(built * 3 > types.len() * 2, "only {built} of {} could be built", types.len());
}
