//! A directory with a config and safetensors files.

use std::fs;
use std::path::Path;

use zeropilot_model::local::{LocalErrorKind, open};
use zeropilot_model::safetensors::{Difference, HeaderError};

const CONFIG: &str = r#"{"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 3,
    "vocab_size": 5}"#;

fn write(directory: &Path, name: &str, tensors: &[(String, Vec<u64>)]) {
    let mut offset = 0;
    let members: Vec<String> = tensors
        .iter()
        .map(|(name, shape)| {
            let begin = offset;
            offset += 4 * shape.iter().product::<u64>();
            format!(
                r#""{name}":{{"dtype":"F32","shape":{shape:?},"data_offsets":[{begin},{offset}]}}"#
            )
        })
        .collect();
    let json = format!("{{{}}}", members.join(","));
    // The data is left out: nobody reads it.
    let bytes = [&(json.len() as u64).to_le_bytes(), json.as_bytes()].concat();
    fs::write(directory.join(name), bytes).expect("a file");
}

#[test]
fn headers_that_agree_with_the_config_differ_in_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("config.json"), CONFIG).expect("a file");
    let model = open(directory.path()).expect("a model").model;
    let tensors: Vec<(String, Vec<u64>)> = model
        .parameters()
        .map(|entry| (entry.name.clone(), entry.parameter.shape.clone()))
        .collect();
    write(directory.path(), "model.safetensors", &tensors);
    let comparison = open(directory.path()).expect("a model").comparison.expect("both");
    assert_eq!((comparison.differences.len(), comparison.surplus()), (0, 0));
}

#[test]
fn differences_are_data() {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("config.json"), CONFIG).expect("a file");
    let model = open(directory.path()).expect("a model").model;
    let mut tensors: Vec<(String, Vec<u64>)> = model
        .parameters()
        .map(|entry| (entry.name.clone(), entry.parameter.shape.clone()))
        .collect();
    tensors[1].1 = vec![7, 4];
    tensors.pop();
    tensors.push(("lm_head.weight".to_owned(), vec![5, 4]));
    tensors.push(("mtp.weight".to_owned(), vec![2]));
    write(directory.path(), "model.safetensors", &tensors);
    let comparison = open(directory.path()).expect("a model").comparison.expect("both");
    let kinds: Vec<&str> = comparison
        .differences
        .iter()
        .map(|difference| match difference {
            Difference::StoredTwice { .. } => "stored twice",
            Difference::Shape { .. } => "shape",
            Difference::OnlyBuilt { .. } => "only built",
            Difference::OnlyStored { .. } => "only stored",
        })
        .collect();
    assert_eq!(kinds, ["stored twice", "shape", "only built", "only stored"]);
}

#[test]
fn empty_directories_and_broken_headers_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    assert!(matches!(open(directory.path()).unwrap_err().kind, LocalErrorKind::NoModel));
    fs::write(directory.path().join("model.safetensors"), u64::MAX.to_le_bytes()).expect("a file");
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error.kind, LocalErrorKind::Header(HeaderError::TooLong(_))));
    assert!(error.path.ends_with("model.safetensors"));
}
