//! Any text as somebody pastes it: it is recognized without a panic, and what is certain is a config when it is read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_job::Pasted;

fuzz_target!(|text: &str| {
    let pasted = Pasted::of(None, text);
    assert!(!pasted.is_certain() || pasted.config.is_some());
    if let Some(config) = &pasted.config {
        let _ = Pasted::of(None, config);
    }
});
