//! What is said to have no effect, measured: real ranks train with the key and without it, and
//! allocate and send the same to the byte. The other side is `oracle/measure_server.py`.

use serde_json::{Value, json};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_lint::{Settings, check};
use zeropilot_oracle::Oracle;

/// Configs without the key that is put in, the rule that says it does nothing, the section and key.
fn cases() -> Vec<(&'static str, u8, &'static str, &'static str, Value)> {
    vec![
        ("K01", 2, "", "zero_optimisation", json!({"stage": 3})),
        ("G05", 2, "zero_optimization", "stage3_max_live_parameters", json!(1000)),
        ("G05", 1, "zero_optimization", "sub_group_size", json!(1000)),
        ("F01", 2, "zero_optimization", "offload_param", json!({"device": "cpu"})),
        (
            "C01",
            3,
            "",
            "activation_checkpointing",
            json!({"partition_activations": true, "cpu_checkpointing": true}),
        ),
        ("F17", 2, "", "aio", json!({"block_size": 4096})),
        ("G10", 3, "zero_optimization", "load_from_fp32_weights", json!(false)),
        ("G27", 2, "", "seq_parallel_communication_data_type", json!("bf16")),
    ]
}

fn config(stage: u8, added: Option<(&str, &str, &Value)>) -> Value {
    let mut config = json!({
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": true},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": true}},
        "zero_optimization": {"stage": stage},
    });
    if let Some((section, key, value)) = added {
        let object = if section.is_empty() { &mut config } else { &mut config[section] };
        object[key] = value.clone();
    }
    config
}

fn question(config: &Value) -> Value {
    let model = json!({"model_type": "llama", "vocab_size": 256, "hidden_size": 64,
        "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 4, "max_position_embeddings": 64});
    json!({"hf_config": model, "config": config, "world": 2, "seq": 16})
}

#[test]
fn keys_without_effect_change_neither_memory_nor_traffic() {
    let Some(home) = zeropilot_oracle::home() else { return };
    let cases = cases();
    let mut questions = Vec::new();
    for (code, stage, section, key, value) in &cases {
        let with = config(*stage, Some((section, key, value)));
        // Some is said only where the HF Trainer reads the file, whose models these are.
        let told = FrontEnd::ALL.iter().any(|front_end| {
            let settings = Settings {
                world_size: Some(2),
                front_end: Some(*front_end),
                ..Settings::default()
            };
            let report = check(with.to_string().as_bytes(), &settings);
            report.diagnostics.iter().any(|found| found.rule.code == *code)
        });
        assert!(told, "{key} does not give {code}");
        questions.extend([question(&with), question(&config(*stage, None))]);
    }
    let answers = Oracle::start(&home, "measure_server.py").answers(questions);
    for ((code, _, _, key, _), pair) in cases.iter().zip(answers.chunks(2)) {
        assert!(pair[0]["ranks"].is_array(), "{code}: {key}: {}", pair[0]);
        assert_eq!(pair[0]["ranks"], pair[1]["ranks"], "{code}: {key} changes memory");
        assert_eq!(pair[0]["traffic"], pair[1]["traffic"], "{code}: {key} changes traffic");
    }
    println!("{} keys without effect measured", cases.len());
}
