//! Any bytes as `config.json`: a model or an error, and a model can be counted, listed and adapted.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_model::Model;
use zeropilot_model::lora::Lora;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(model) = Model::from_config(text) else { return };
    assert!(model.count().trainable <= model.elements());
    assert!(model.count().active <= model.elements());
    let listed: u64 =
        model.parameters().take(1000).filter_map(|entry| entry.parameter.elements()).sum();
    assert!(listed <= model.elements().0);
    let _ = Lora::new(8).on_all_linear().apply(&model);
});
