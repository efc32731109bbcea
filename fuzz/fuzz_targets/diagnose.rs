//! Any bytes as the log of a run: an answer or none, the same however the log is cut into pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_diagnose::Reader;

fuzz_target!(|bytes: &[u8]| {
    let read = |size: usize| {
        let mut reader = Reader::default();
        bytes.chunks(size).for_each(|piece| reader.feed(piece));
        reader.finish()
    };
    assert_eq!(read(bytes.len().max(1)), read(7));
});
