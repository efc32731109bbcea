//! Questions as a page puts them. That answers are the command line's is tested in a browser, beside it.

use serde_json::{Value, json};

fn answer(text: &str) -> Value {
    serde_json::from_str(text).expect("answers are JSON")
}

fn problem(text: &str) -> String {
    answer(text)["problem"].as_str().expect("a problem").to_owned()
}

#[test]
fn a_model_that_is_not_in_the_catalogue_is_answered_with_what_was_meant() {
    let ask = |language: &str| {
        let question = json!({
            "language": language,
            "model": {"name": "qwen3-8bb"},
            "request": {"machines": {"gpus": "8xA100-80G"}},
        });
        problem(&zeropilot_wasm::plan(&question.to_string()))
    };
    assert!(ask("en").contains("did you mean `Qwen3-8B`"), "{}", ask("en"));
    assert!(ask("zh").contains("是不是想写 `Qwen3-8B`"), "{}", ask("zh"));
}

#[test]
fn a_pasted_config_is_a_model_and_a_broken_one_says_so() {
    let ask = |config: &str| {
        let question = json!({
            "language": "en",
            "model": {"name": "config.json", "config": config},
            "request": {"machines": {"gpus": "2x24GB"}, "stage": 2},
        });
        zeropilot_wasm::memory_of(&question.to_string())
    };
    let gpt2 = r#"{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 64}"#;
    assert_eq!(answer(&ask(gpt2))["json"]["stage"], 2);
    assert!(problem(&ask("{")).contains("config.json"));
}

#[test]
fn a_question_that_is_none_is_named_with_its_place() {
    let question =
        json!({"model": {"name": "gpt2"}, "request": {"machines": {"gpus": "8", "colour": 1}}});
    let said = problem(&zeropilot_wasm::compare(&question.to_string()));
    assert!(said.contains("request.machines") && said.contains("colour"), "{said}");
}

#[test]
fn what_fills_a_gpu_is_never_more_than_what_it_needs() {
    let question = json!({
        "model": {"name": "gpt2"},
        "request": {"machines": {"gpus": "4x24GB"}, "training": {"seq_len": 512}},
    });
    let compared = answer(&zeropilot_wasm::compare(&question.to_string()));
    let ways = compared["json"]["strategies"].as_array().expect("ways");
    assert_eq!(ways.len(), compared["words"]["strategies"].as_array().map_or(0, Vec::len));
    for way in ways {
        let parts = way["device"]["at_peak"].as_object().expect("parts").values();
        let tensors: u64 = parts.filter_map(Value::as_u64).sum();
        assert!(tensors > 0 && tensors <= way["device"]["expected"].as_u64().unwrap_or(0), "{way}");
    }
}

#[test]
fn everything_that_can_be_chosen_has_a_name() {
    let all = answer(&zeropilot_wasm::catalogue(r#"{"language": "zh"}"#));
    for kind in ["models", "accelerators", "engines", "front_ends", "targets"] {
        assert!(all["json"][kind].as_array().is_some_and(|all| !all.is_empty()), "{kind}");
    }
    assert_eq!(all["words"]["parts"][0]["words"], "模型权重");
}

#[test]
fn a_place_in_a_config_is_answered_with_what_can_be_written_there() {
    let text = "{\"名\": 1,\n\"zero_optimization\": {\"red\n}}";
    let offset = text.find("red").map_or(0, |start| start + 3);
    let question = json!({"language": "en", "text": text, "offset": offset});
    let found = answer(&zeropilot_wasm::complete(&question.to_string()));
    let json = &found["json"];
    assert_eq!(
        (json["start"].as_u64(), json["end"].as_u64()),
        (Some(offset as u64 - 4), Some(offset as u64))
    );
    let choices = json["choices"].as_array().expect("choices");
    let bucket = choices.iter().find(|choice| choice["label"] == "reduce_bucket_size");
    let bucket = bucket.expect("the key");
    assert_eq!(bucket["head"], "\"reduce_bucket_size\": ");
    assert_eq!(bucket["value"], "500000000");
    assert_eq!(bucket["several"], true);
    assert_eq!(bucket["path"], "zero_optimization.reduce_bucket_size");
}
