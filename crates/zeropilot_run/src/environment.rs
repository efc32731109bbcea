//! What of the environment and the command belongs into a record: nothing that could be a secret.

mod masked;

use std::collections::BTreeMap;
use std::ffi::OsString;

pub use self::masked::masked;

/// Variables that engine, launchers and libraries read begin like this.
const KEPT: [&str; 22] = [
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "GLOO_",
    "DS_",
    "DEEPSPEED",
    "TORCH",
    "PYTORCH_",
    "OMP_",
    "MKL_",
    "ACCELERATE_",
    "FORCE_TORCHRUN",
    "HF_",
    "TRANSFORMERS_",
    "TOKENIZERS_",
    "MASTER_",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_JOB",
    "VIRTUAL_ENV",
    "CONDA_DEFAULT_ENV",
];

/// Names with one of these in them may hold a secret.
const SECRET: [&str; 8] =
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE"];

/// Names that hold one if they are nothing else.
const SHORT: [&str; 3] = ["PAT", "PWD", "PASS"];

/// `-k` is the key of many tools, and a number for others.
fn may_be_key(option: &str, value: &str) -> bool {
    option == "-k" && value.parse::<f64>().is_err()
}

const REMOVED: &str = "[removed]";

fn may_be_secret(name: &str) -> bool {
    // Tokenizers are no tokens.
    let name = name.to_uppercase().replace("TOKENIZER", "");
    let is_short = SHORT.contains(&name.trim_start_matches('-'));
    is_short || SECRET.iter().any(|word| name.contains(word))
}

/// The variables that are kept.
pub fn kept(variables: impl Iterator<Item = (String, String)>) -> BTreeMap<String, String> {
    let is_kept = |name: &str| KEPT.iter().any(|prefix| name.starts_with(prefix));
    let kept = variables.filter(|(name, _)| is_kept(name) && !may_be_secret(name));
    kept.map(|(name, value)| (name, masked(&value).into_owned())).collect()
}

/// The words of a command with the values of secret options removed.
pub fn without_secrets(words: &[OsString]) -> Vec<String> {
    let mut hide_next = false;
    let mut before = String::new();
    let one = |word: &OsString| {
        let word = word.to_string_lossy();
        let word = masked(&word).into_owned();
        let is_key = may_be_key(&before, &word);
        before.clone_from(&word);
        let hide = std::mem::take(&mut hide_next) || is_key;
        if hide && !word.starts_with('-') {
            return REMOVED.to_owned();
        }
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let is_name = name.starts_with('-') || value.is_some();
        match value {
            Some(value) if is_name && (may_be_secret(name) || may_be_key(name, value)) => {
                format!("{name}={REMOVED}")
            }
            None if is_name && may_be_secret(name) => {
                hide_next = true;
                word
            }
            _ => word,
        }
    };
    words.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_outside() {
        let variables = [
            ("HF_TOKEN", "x"),
            ("HF_HOME", "/h"),
            ("AWS_SECRET", "x"),
            ("TOKENIZERS_PARALLELISM", "1"),
        ];
        let kept = kept(variables.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())));
        let names: Vec<&str> = kept.keys().map(String::as_str).collect();
        assert_eq!(names, ["HF_HOME", "TOKENIZERS_PARALLELISM"]);
        let secret = ["--pat", "x", "Pwd=x"].map(OsString::from);
        assert_eq!(without_secrets(&secret), ["--pat", "[removed]", "Pwd=[removed]"]);
        for (words, clean) in [
            (["t.py", "-k", "sw0rdf1sh"], ["t.py", "-k", "[removed]"]),
            (["t.py", "-k=sw0rdf1sh", "b"], ["t.py", "-k=[removed]", "b"]),
            (["t.py", "-k", "50"], ["t.py", "-k", "50"]),
            (["t.py", "-k", "--all"], ["t.py", "-k", "--all"]),
        ] {
            assert_eq!(without_secrets(&words.map(OsString::from)), clean);
        }
        let words =
            ["WANDB_API_KEY=x", "t.py", "--hub_token", "x", "--api-key=x", "--tokenizer", "t"];
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let hidden = [
            "WANDB_API_KEY=[removed]",
            "t.py",
            "--hub_token",
            "[removed]",
            "--api-key=[removed]",
            "--tokenizer",
            "t",
        ];
        assert_eq!(without_secrets(&words), hidden);
    }
}
