//! `zeropilot schema` as a user runs it.

mod bench;

use bench::Bench;
use serde_json::Value;

fn schema(arguments: &[&str]) -> Value {
    let bench = Bench::new(&[]);
    let mut all = vec!["schema"];
    all.extend(arguments);
    let run = bench.run(&all);
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn both_languages_describe_the_keys_unless_one_is_named() {
    let stage = |schema: &Value| {
        let zero = &schema["properties"]["zero_optimization"]["anyOf"][0];
        zero["properties"]["stage"]["description"].as_str().expect("a description").to_owned()
    };
    let both = stage(&schema(&[]));
    let english = stage(&schema(&["--lang", "en"]));
    let chinese = stage(&schema(&["--lang", "zh"]));
    assert!(english.is_ascii() && english.contains("optimizer states"), "{english}");
    assert!(chinese.contains("优化器状态"), "{chinese}");
    assert_eq!(both, format!("{english}\n\n{chinese}"));
}

/// `elasticity` was read up to 0.18 and is refused since; `zenflow` came with 0.17.
#[test]
fn the_schema_is_that_of_the_engine_asked_for() {
    let older = schema(&["--engine", "0.16.9"]);
    let newest = schema(&["--deepspeed-version", "0.19.8"]);
    assert_eq!(older["title"], "DeepSpeed 0.16.9 config");
    assert!(older["properties"]["elasticity"].get("not").is_none());
    assert!(newest["properties"]["elasticity"].get("not").is_some());
    let zenflow = |schema: &Value| {
        schema["properties"]["zero_optimization"]["anyOf"][0]["properties"].get("zenflow").is_some()
    };
    assert!(!zenflow(&older) && zenflow(&newest));
}

#[test]
fn an_engine_that_does_not_exist_is_said() {
    let run = Bench::new(&[]).run(&["schema", "--engine", "latest"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("`latest` is not a DeepSpeed version"), "{}", run.stderr);
}
