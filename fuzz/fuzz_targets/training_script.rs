//! Any text as a training script in Python.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_fuzz::judged;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    judged("torchrun --nproc_per_node 2 any.py --batch 2", text);
});
