//! What a command says about how long it trains, on how much, and in which way.

use std::ffi::OsString;

use serde_json::{Map, Value};

use crate::command::value;

/// Optimizer steps, as training programs name them.
const STEPS: [&str; 8] = [
    "--max_steps",
    "--max-steps",
    "--steps",
    "--train-iters",
    "--train_iters",
    "--max_train_steps",
    "--num_train_steps",
    "--total_steps",
];

/// Tokens of a sequence, as training programs name them.
const SEQUENCE: [&str; 10] = [
    "--max_seq_length",
    "--max_seq_len",
    "--seq_length",
    "--seq-length",
    "--seq_len",
    "--seq-len",
    "--block_size",
    "--cutoff_len",
    "--model_max_length",
    "--max_length",
];

/// Arguments of training programs that only adapters have, with the rank if they are that.
const ADAPTERS: [&str; 4] = ["--lora_r", "--lora_rank", "--lora-rank", "--lora_alpha"];
/// Arguments of training programs that say what is trained, if it is adapters.
const METHODS: [&str; 6] =
    ["--finetuning_type", "--train_type", "--tuner_type", "--sft_type", "--use_lora", "--use_peft"];

/// How long, on how much and how, as far as it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Asked {
    /// Optimizer steps.
    pub total_steps: Option<u64>,
    /// Tokens of an optimizer step over all ranks, if every sequence is full.
    pub tokens_per_step: Option<u64>,
    /// Tokens of a sequence.
    pub sequence: Option<u64>,
    /// Whether layers are recomputed in backward.
    pub recomputes: bool,
    /// The rank of the adapters, if adapters are trained.
    pub adapters: Option<u64>,
}

/// The rank that most programs take if they are told none.
const USUAL_RANK: u64 = 8;

impl Asked {
    /// From the words of a command, its config and the number of its ranks.
    pub fn read(
        words: &[OsString],
        config: Option<&Map<String, Value>>,
        world: Option<usize>,
    ) -> Self {
        let number = |name: &&str| value(words, name)?.parse::<u64>().ok().filter(|n| *n > 0);
        let sequence = SEQUENCE.iter().find_map(number);
        let key = |key: &str| config?.get(key)?.as_u64();
        let product = || {
            let micro = key("train_micro_batch_size_per_gpu")
                .or_else(|| number(&"--per_device_train_batch_size"))?;
            let accumulation = key("gradient_accumulation_steps")
                .or_else(|| number(&"--gradient_accumulation_steps"))
                .unwrap_or(1);
            micro.checked_mul(accumulation)?.checked_mul(world? as u64)
        };
        let batch = key("train_batch_size").or_else(product);
        let is_on = |name: &&str| {
            value(words, name)
                .is_some_and(|value| !matches!(value.as_str(), "false" | "False" | "0"))
                || words.last().is_some_and(|last| last == *name)
        };
        let names_adapters = |name: &&str| {
            let said = value(words, name).unwrap_or_default().to_lowercase();
            said == "lora" || (name.starts_with("--use") && is_on(name))
        };
        let rank = ADAPTERS[..3].iter().find_map(number);
        let has_adapters = ADAPTERS.iter().any(|name| value(words, name).is_some())
            || METHODS.iter().any(names_adapters);
        Self {
            sequence,
            recomputes: is_on(&"--gradient_checkpointing"),
            adapters: has_adapters.then(|| rank.unwrap_or(USUAL_RANK)),
            total_steps: STEPS.iter().find_map(number),
            tokens_per_step: sequence
                .zip(batch)
                .and_then(|(tokens, batch)| tokens.checked_mul(batch)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(words: &str, config: &Value) -> Asked {
        let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
        Asked::read(&words, config.as_object(), Some(4))
    }

    #[test]
    fn steps_and_tokens_follow_from_arguments_and_config() {
        let trainer = "t.py --max_steps 50 --max_seq_length=128 --per_device_train_batch_size 2 --gradient_accumulation_steps 3";
        let auto = json!({"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"});
        // 128 tokens × 2 per rank × 3 accumulated × 4 ranks.
        let found = asked(trainer, &auto);
        assert_eq!((found.total_steps, found.sequence), (Some(50), Some(128)));
        assert_eq!(found.tokens_per_step, Some(128 * 2 * 3 * 4));
        assert!(!found.recomputes && found.adapters.is_none());
        let whole = json!({"train_batch_size": 64});
        assert_eq!(asked("t.py --seq_len 10", &whole).tokens_per_step, Some(640));
    }

    #[test]
    fn adapters_and_recomputation_show_in_arguments() {
        let of = |words: &str| asked(words, &json!({}));
        assert!(of("t.py --gradient_checkpointing True --x").recomputes);
        assert!(of("t.py --gradient_checkpointing").recomputes);
        assert!(!of("t.py --gradient_checkpointing false").recomputes);
        assert_eq!(of("swift sft --train_type lora --lora_rank 64").adapters, Some(64));
        assert_eq!(of("t.py --use_peft --lora_r=32").adapters, Some(32));
        assert_eq!(of("t.py --use_lora true").adapters, Some(USUAL_RANK));
        assert_eq!(of("t.py --use_lora false --train_type full").adapters, None);
    }

    #[test]
    fn what_is_not_said_is_not_guessed() {
        assert_eq!(
            asked("t.py --max_steps -1", &json!({"train_batch_size": 64})),
            Asked::default()
        );
    }
}
