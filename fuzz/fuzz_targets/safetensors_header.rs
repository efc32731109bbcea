//! Any bytes as the beginning of a safetensors file: tensors whose sizes add up, or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use zeropilot_model::safetensors::{ShardIndex, StoredModel, parse_header};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = ShardIndex::parse(text);
    }
    // The length would stop most inputs: read them once as they are and once with the right one.
    check(bytes);
    check(&[&(bytes.len() as u64).to_le_bytes(), bytes].concat());
});

fn check(file: &[u8]) {
    let Ok(header) = parse_header(file) else { return };
    let data_bytes = header.data_bytes;
    let stored = StoredModel::new([header]);
    assert_eq!(stored.bytes().0, data_bytes);
    if let Ok(model) = stored.model() {
        assert_eq!(model.elements(), stored.elements());
    }
}
