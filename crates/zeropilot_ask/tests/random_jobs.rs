//! Random jobs with something added that no prediction follows: the answer changes, is refused, or says so. It is never
//! the same answer without a word.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use serde_json::{Value, json};
use zeropilot_ask::{Job, Machines, MemoryRequest, Training};
use zeropilot_config::keys::{self, Unit};
use zeropilot_job::{TrainingJob, read};
use zeropilot_model::{Model, Weights};
use zeropilot_oracle::{Random, seed};
use zeropilot_step::memory::Answer;

fn knowledge(file: &str) -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge/");
    serde_json::from_str(&std::fs::read_to_string(format!("{path}{file}")).unwrap()).unwrap()
}

/// A job: a launch script, the config it names and the model.
#[derive(Debug, Clone)]
struct Written {
    arguments: Vec<String>,
    variables: Vec<String>,
    config: Value,
    model: Value,
    gpus: &'static str,
}

impl Written {
    fn random(dice: &mut Random, models: &[Value]) -> Self {
        let stage = dice.below(4);
        let mut config = json!({
            "train_micro_batch_size_per_gpu": "auto",
            "gradient_accumulation_steps": "auto",
            "zero_optimization": {"stage": stage, "overlap_comm": dice.one_in(2)},
            "bf16": {"enabled": true},
        });
        if stage > 0 && dice.one_in(3) {
            config["zero_optimization"]["offload_optimizer"] = json!({"device": "cpu"});
        }
        let mut arguments = vec![
            "--bf16 true".to_owned(),
            format!("--per_device_train_batch_size {}", dice.between(1, 4)),
            format!("--gradient_accumulation_steps {}", dice.between(1, 3)),
        ];
        if dice.one_in(2) {
            arguments.push("--gradient_checkpointing true".to_owned());
        }
        Self {
            arguments,
            variables: Vec::new(),
            config,
            model: dice.pick(models).clone(),
            gpus: dice.word(&["2x80GB", "8x24GB", "2x8x40GB"]),
        }
    }

    /// What a user is told; `None` if the job is refused.
    fn told(&self) -> Option<Told> {
        let variables = self.variables.join(" ");
        let arguments = self.arguments.join(" ");
        let text = format!(
            "{variables} deepspeed --num_gpus 2 train.py --deepspeed ds.json {arguments}\n"
        );
        let config = self.config.to_string();
        let script = "from transformers import HfArgumentParser, Trainer, TrainingArguments\n\
            args = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()[0]\n\
            Trainer(model=model, args=args).train()\n";
        let files = |name: &str| match name {
            "ds.json" => Some(config.clone()),
            "train.py" => Some(script.to_owned()),
            _ => None,
        };
        let launched = read(&text, &Default::default(), &files);
        let launch = launched.launches.first().unwrap();
        let job = TrainingJob::of_launch("run.sh", &text, &launched, launch, &files);
        let model = Model::from_config_with(&self.model.to_string(), Weights::Fresh).ok()?;
        let request = MemoryRequest {
            machines: Machines { gpus: Some(self.gpus.to_owned()), ..Machines::default() },
            training: Training { seq_len: Some(512), ..Training::default() },
            job,
            ..MemoryRequest::default()
        };
        let job = Job::of("model", model, &request).ok()?;
        let answer = Answer::to(&job.question()).ok()?;
        Some(Told {
            bytes: format!("{:?} {:?}", answer.device(), answer.node()),
            notes: job.provenance.not_modelled.len() + job.provenance.notes.len(),
            statements: job.provenance.statements.len(),
            is_stand_in: format!("{:?}", answer.fidelity),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Told {
    bytes: String,
    notes: usize,
    /// Values that the answer rests on: an argument that is read is one of them.
    statements: usize,
    is_stand_in: String,
}

/// Something that no prediction follows.
#[derive(Debug, Clone)]
enum Added {
    Key(String, Value),
    Argument(String),
    /// Eyes: the model becomes the text part of a larger one.
    Tower,
    Variable(&'static str),
}

impl Added {
    fn to(&self, job: &Written) -> Written {
        let mut job = job.clone();
        match self {
            Self::Key(key, value) => set(&mut job.config, key, value.clone()),
            Self::Argument(argument) => job.arguments.push(argument.clone()),
            Self::Tower => {
                let vision = json!({"model_type": "siglip_vision_model", "hidden_size": 64,
                    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128,
                    "image_size": 32, "patch_size": 8});
                job.model = json!({"model_type": "llava", "text_config": job.model,
                    "architectures": ["LlavaForConditionalGeneration"], "vision_config": vision});
            }
            Self::Variable(variable) => job.variables.push((*variable).to_owned()),
        }
        job
    }
}

fn set(object: &mut Value, path: &str, value: Value) {
    match path.split_once('.') {
        None => object[path] = value,
        Some((first, rest)) => {
            if !object[first].is_object() {
                object[first] = json!({});
            }
            set(&mut object[first], rest, value);
        }
    }
}

/// Every key and argument that is listed as not modelled, with a value that acts, and what else people add to a job.
fn additions(dice: &mut Random) -> Vec<Added> {
    let mut all = Vec::new();
    for known in knowledge("recipes/config_keys.json").as_array().unwrap() {
        let key = known["key"].as_str().unwrap();
        let value = match (known["only"].as_array(), keys::text(key).map(|text| text.unit)) {
            (Some(only), _) => dice.pick(only).clone(),
            (None, Some(Unit::Boolean)) => json!(known["idle"][0] != "true"),
            (None, Some(Unit::Section)) => json!({}),
            _ => json!(2),
        };
        all.push(Added::Key(key.to_owned(), value));
    }
    for known in knowledge("recipes/arguments.json")["not_modelled"].as_array().unwrap() {
        let idle = known["unless"].as_array().unwrap();
        let is_switch = idle.iter().any(|value| value == "false");
        let name = dice.pick(known["names"].as_array().unwrap()).as_str().unwrap();
        all.push(Added::Argument(format!("--{name} {}", if is_switch { "true" } else { "2" })));
    }
    // Kernels.
    for argument in ["--use_liger_kernel true", "--attn_implementation flash_attention_2"] {
        all.push(Added::Argument(argument.to_owned()));
    }
    all.push(Added::Variable("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"));
    all.push(Added::Tower);
    all
}

#[test]
fn nothing_is_added_to_a_job_without_a_word() {
    let models: Vec<Value> = knowledge("effects/measured.json")["models"]
        .as_object()
        .unwrap()
        .values()
        .cloned()
        .collect();
    let mut dice = Random::new(seed());
    let mut silent = Vec::new();
    for _ in 0..8 {
        let job = Written::random(&mut dice, &models);
        let Some(before) = job.told() else { continue };
        for added in additions(&mut dice) {
            if added.to(&job).told().is_some_and(|after| after == before) {
                silent.push(format!("{added:?} to {job:?}"));
            }
        }
    }
    assert!(silent.is_empty(), "{}:\n{}", silent.len(), silent.join("\n"));
}
