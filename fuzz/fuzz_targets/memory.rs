//! Any `config.json` that is read as a model: its memory and its step time are answers or errors, never an overflow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_ask::{MemoryRequest, memory};
use zeropilot_model::Model;

const REQUESTS: [&str; 3] = [
    r#"{"machines": {"gpus": "8x80GB"}}"#,
    r#"{"machines": {"gpus": "1x24GB"}, "stage": 0}"#,
    r#"{"machines": {"gpus": "131072x80GB"}, "stage": 2, "offload": "optimizer"}"#,
];

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(model) = Model::from_config(text) else { return };
    // More layers are the same again and only take longer.
    if model.parameters().nth(2000).is_some() {
        return;
    }
    for request in REQUESTS {
        let request: MemoryRequest = serde_json::from_str(request).expect("a request");
        if let Ok(answer) = memory("fuzzed", model.clone(), &request) {
            let device = answer.answer.device();
            assert!(device.low() <= device.expected() && device.expected() <= device.high());
        }
    }
});
