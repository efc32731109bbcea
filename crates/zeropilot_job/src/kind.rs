//! What a file is, by its name and its keys. Only what is certain is named; everything else is [`FileKind::Other`].

use serde_json::Value;

use crate::yaml;

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A DeepSpeed config.
    DeepSpeedConfig,
    /// The `config.json` of a model.
    ModelConfig,
    /// Another file beside a model or a checkpoint: its index, its tokenizer, the state of the Trainer.
    BesideModel,
    /// A shell script that may start training.
    LaunchScript,
    /// A Python program.
    TrainingScript,
    /// accelerate's YAML.
    Accelerate,
    /// LLaMA-Factory's YAML or JSON.
    LlamaFactory,
    /// axolotl's YAML.
    Axolotl,
    /// ms-swift's YAML or JSON.
    Swift,
    /// Something else, or nothing that is certain.
    Other,
}

/// Keys that only a DeepSpeed config has at its top level.
pub(crate) const DEEPSPEED_KEYS: [&str; 14] = [
    "zero_optimization",
    "train_micro_batch_size_per_gpu",
    "train_batch_size",
    "zero_allow_untested_optimizer",
    "zero_force_ds_cpu_optimizer",
    "wall_clock_breakdown",
    "steps_per_print",
    "activation_checkpointing",
    "communication_data_type",
    "prescale_gradients",
    "sparse_gradients",
    "flops_profiler",
    "data_types",
    "aio",
];

/// Keys that only files beside a model or a checkpoint have.
const BESIDE_MODEL: [&str; 7] = [
    "log_history",
    "weight_map",
    "peft_type",
    "tokenizer_class",
    "transformers_version",
    "bos_token_id",
    "image_processor_type",
];

/// Endings of shell scripts and of batch scripts.
const SHELL: [&str; 5] = ["sh", "bash", "slurm", "sbatch", "sub"];

impl FileKind {
    /// What a file of this name with this content is.
    pub fn of(name: &str, text: &str) -> Self {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        match ending.as_str() {
            "py" => Self::TrainingScript,
            "yaml" | "yml" => {
                let entries = yaml::scalars(text);
                let keys: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
                let has_list = |key: &str| {
                    text.lines().any(|line| {
                        line.strip_prefix(key)
                            .is_some_and(|rest| rest.trim_start().starts_with(':'))
                    })
                };
                Self::of_settings(&|key| keys.contains(&key) || has_list(key))
            }
            // Most are configs, and known without being read.
            "json" if is_plainly_config(text) => Self::DeepSpeedConfig,
            "json" => match serde_json::from_str::<Value>(text) {
                Ok(Value::Object(members)) => {
                    let has = |key: &str| members.contains_key(key);
                    if has("model_type") || has("architectures") {
                        Self::ModelConfig
                    } else if BESIDE_MODEL.iter().any(|key| has(key)) {
                        Self::BesideModel
                    } else if DEEPSPEED_KEYS.iter().any(|key| has(key)) {
                        Self::DeepSpeedConfig
                    } else {
                        Self::of_settings(&has)
                    }
                }
                _ => Self::Other,
            },
            ending if SHELL.contains(&ending) => Self::LaunchScript,
            _ if text.starts_with("#!")
                && text.lines().next().is_some_and(|line| line.contains("sh")) =>
            {
                Self::LaunchScript
            }
            _ => Self::Other,
        }
    }

    fn of_settings(has: &dyn Fn(&str) -> bool) -> Self {
        let any = |keys: &[&str]| keys.iter().any(|key| has(key));
        if has("compute_environment") || (has("distributed_type") && has("num_processes")) {
            Self::Accelerate
        } else if has("base_model")
            && any(&["datasets", "sequence_len", "micro_batch_size", "adapter"])
        {
            Self::Axolotl
        } else if has("model_name_or_path")
            && any(&["finetuning_type", "stage", "template", "cutoff_len", "do_train"])
        {
            Self::LlamaFactory
        } else if has("model") && any(&["tuner_type", "train_type", "rlhf_type"]) {
            Self::Swift
        } else {
            Self::Other
        }
    }

    /// Whether it leads to the DeepSpeed config of a run, rather than being one.
    pub fn leads_to_config(self) -> bool {
        matches!(self, Self::LaunchScript) || self.command("").is_some()
    }

    /// The command that starts training with such a file, where the file itself is no script.
    pub fn command(self, name: &str) -> Option<String> {
        let quoted = format!("'{}'", name.replace('\'', r"'\''"));
        Some(match self {
            Self::LlamaFactory => format!("llamafactory-cli train {quoted}"),
            Self::Axolotl => format!("axolotl train {quoted}"),
            Self::Swift => format!("swift sft {quoted}"),
            // Which program it starts, the file does not say.
            Self::Accelerate => format!("accelerate launch --config_file {quoted} ''.py"),
            // Nor does a program say who starts its ranks.
            Self::TrainingScript => format!("RANK=$RANK python {quoted}"),
            _ => return None,
        })
    }
}

/// Whether the text names what only configs have and nothing that only other files have.
fn is_plainly_config(text: &str) -> bool {
    let has = |key: &str| {
        // As a key: a baseline names keys as values.
        let is_key = |after: &str| after.trim_start().starts_with(':');
        text.split(&format!("\"{key}\"")).skip(1).any(is_key)
    };
    has("zero_optimization")
        && !has("model_type")
        && !has("architectures")
        && !BESIDE_MODEL.iter().any(|key| has(key))
        && text.trim_end().ends_with('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_what_only_they_have() {
        for (name, text, kind) in [
            ("ds.json", r#"{"zero_optimization": {"stage": 2}}"#, FileKind::DeepSpeedConfig),
            ("config.json", r#"{"model_type": "llama", "hidden_size": 64}"#, FileKind::ModelConfig),
            (
                "trainer_state.json",
                r#"{"log_history": [], "train_batch_size": 8}"#,
                FileKind::BesideModel,
            ),
            (
                "baseline.json",
                r#"{"version": 1, "findings": [{"file": "ds.json", "rule": "Z01", "key": "zero_optimization"}]}"#,
                FileKind::Other,
            ),
            ("package.json", r#"{"name": "page", "version": "1"}"#, FileKind::Other),
            (
                "a.yaml",
                "compute_environment: LOCAL_MACHINE\nnum_processes: 8\n",
                FileKind::Accelerate,
            ),
            ("b.yml", "base_model: x\ndatasets:\n  - path: y\n", FileKind::Axolotl),
            ("c.yaml", "model_name_or_path: x\nstage: sft\n", FileKind::LlamaFactory),
            ("d.yaml", "model: x\ntuner_type: lora\n", FileKind::Swift),
            ("e.yaml", "services:\n  web:\n    image: x\n", FileKind::Other),
            ("f.yaml", "model: x\nname: y\n", FileKind::Other),
            ("g.json", "{\"zero_optimization\": ", FileKind::Other),
            ("train.sh", "deepspeed t.py", FileKind::LaunchScript),
            ("train", "#!/bin/bash\ndeepspeed t.py", FileKind::LaunchScript),
            ("t.py", "import deepspeed", FileKind::TrainingScript),
        ] {
            assert_eq!(FileKind::of(name, text), kind, "{name}");
        }
    }
}
