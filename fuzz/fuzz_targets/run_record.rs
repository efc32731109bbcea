//! Any text as the files of a run's record: events, what the run is, and its verdict.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_record::{Event, RunInfo, Verdict};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for event in text.lines().filter_map(|line| Event::read(line).ok()) {
        Event::read(&event.line()).expect("what was written can be read");
    }
    let _ = serde_json::from_str::<RunInfo>(text);
    let _ = serde_json::from_str::<Verdict>(text);
});
