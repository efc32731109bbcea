//! What the training program must be told beside the config.
//!
//! A front end fills the `"auto"`s from these, so that a number stands in one place only.

use crate::precision::Precision;
use crate::recipe::Recipe;
use crate::search::Work;
use crate::target::Target;

/// One argument by the name the program knows it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// Its name, without dashes.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl Argument {
    fn flag(name: &'static str) -> Self {
        Self { name, value: "true".to_owned() }
    }
}

/// What the program must be told about a micro batch, where it can be told: whether layers are recomputed, whether the
/// loss is fused, how many ranks share a sequence.
pub(crate) fn of_work(target: Target, work: Work) -> Vec<Argument> {
    let recomputing = match (target, work.checkpointing) {
        // The only one that recomputes unless told otherwise and says so by a flag of its own.
        (Target::LlamaFactory, false) => Some("disable_gradient_checkpointing"),
        (Target::HfTrainer | Target::Swift | Target::Axolotl, true) => {
            Some("gradient_checkpointing")
        }
        _ => None,
    };
    let fused = match target {
        Target::HfTrainer | Target::Swift => Some("use_liger_kernel"),
        Target::LlamaFactory => Some("enable_liger_kernel"),
        Target::Axolotl => Some("liger_fused_linear_cross_entropy"),
        Target::DeepSpeed | Target::Accelerate => None,
    };
    let names = [recomputing, fused.filter(|_| work.fused_loss)];
    let flags = names.into_iter().flatten().map(Argument::flag);
    let ranks = work.long_context.sequence_ranks;
    let shared = (target == Target::Swift && ranks > 1)
        .then(|| Argument { name: "sequence_parallel_size", value: ranks.to_string() });
    flags.chain(shared).collect()
}

impl Recipe {
    /// The arguments, in the order people write them. The bare engine needs none.
    pub fn arguments(&self) -> Vec<Argument> {
        match self.target {
            Target::DeepSpeed => Vec::new(),
            // Everything else stands in the file, where accelerate takes it from.
            Target::Accelerate => {
                vec![Argument { name: "batch_size", value: self.batch.micro.to_string() }]
            }
            _ => self.trainer_arguments(),
        }
    }

    fn trainer_arguments(&self) -> Vec<Argument> {
        let given = self.hyper_parameters;
        let number = |number: f64| serde_json::Value::from(number).to_string();
        let micro = match self.target {
            Target::Axolotl => "micro_batch_size",
            _ => "per_device_train_batch_size",
        };
        let precision = match self.precision {
            Precision::Bf16 => Some("bf16"),
            Precision::Fp16(_) => Some("fp16"),
            Precision::Fp32 => None,
        };
        let all = [
            (micro, Some(self.batch.micro.to_string())),
            ("gradient_accumulation_steps", Some(self.batch.accumulation.to_string())),
            (precision.unwrap_or_default(), precision.map(|_| "true".to_owned())),
            ("learning_rate", given.learning_rate.map(number)),
            ("adam_beta1", given.betas.map(|(first, _)| number(first))),
            ("adam_beta2", given.betas.map(|(_, second)| number(second))),
            ("adam_epsilon", given.epsilon.map(number)),
            ("weight_decay", given.weight_decay.map(number)),
            ("max_grad_norm", self.clipping.map(number)),
            ("warmup_steps", self.steps.warmup.map(|steps| steps.to_string())),
            ("max_steps", self.steps.total.map(|steps| steps.to_string())),
        ];
        all.into_iter().filter_map(|(name, value)| Some(Argument { name, value: value? })).collect()
    }
}
