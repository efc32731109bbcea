//! Any text as the YAML that accelerate, LLaMA-Factory and axolotl read.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_fuzz::judged;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    judged("accelerate launch --config_file any.yaml any.py", text);
    judged("llamafactory-cli train any.yaml", text);
    judged("accelerate launch -m axolotl.cli.train any.yaml", text);
});
