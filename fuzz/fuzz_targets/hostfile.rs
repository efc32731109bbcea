//! Any text as a hostfile.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_fuzz::judged;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    judged("deepspeed --hostfile any any.py --deepspeed", text);
});
