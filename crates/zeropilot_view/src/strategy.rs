//! Strategies in words: stage, offload and batch.

use zeropilot_record::{Offload, Strategy};
use zeropilot_text::{Language, Text, tr};

/// "ZeRO-3 + optimizer on host, micro-batch size 2 × 4 accumulation steps".
pub fn strategy_words(strategy: &Strategy, language: Language) -> String {
    let Strategy { stage, micro_batch, gradient_accumulation_steps, .. } = *strategy;
    let offload = offload(strategy.offload_optimizer, strategy.offload_param, language);
    let batch = match (micro_batch, gradient_accumulation_steps) {
        (None, _) => String::new(),
        (Some(micro), None) => tr!(language, ", micro-batch size {micro}", "，micro batch {micro}"),
        (Some(micro), Some(steps)) => batch(micro, steps, language),
    };
    format!("ZeRO-{stage}{offload}{batch}")
}

/// "4 accumulation steps", in English.
pub(crate) fn accumulation(steps: impl ToString) -> String {
    match steps.to_string().as_str() {
        "1" => "1 accumulation step".to_owned(),
        steps => format!("{steps} accumulation steps"),
    }
}

/// ", micro-batch size 2 × 4 accumulation steps".
pub(crate) fn batch(micro: u64, steps: u64, language: Language) -> String {
    let accumulated = accumulation(steps);
    tr!(
        language,
        ", micro-batch size {micro} × {accumulated}",
        "，micro batch {micro} × 累积 {steps}"
    )
}

/// " + optimizer, weights on host".
pub(crate) fn offload(optimizer: Offload, weights: Offload, language: Language) -> String {
    let one = |what: Text, to: Offload| {
        let what = what.get(language);
        match to {
            Offload::None => String::new(),
            Offload::Cpu => tr!(language, " + {what} on host", " + {what}卸载"),
            Offload::Nvme => tr!(language, " + {what} on NVMe", " + {what}卸载到 NVMe"),
        }
    };
    if optimizer == weights {
        return one(Text::new("optimizer, weights", "优化器、权重"), optimizer);
    }
    one(Text::new("optimizer", "优化器"), optimizer) + &one(Text::new("weights", "权重"), weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_worded_in_both_languages() {
        let both = |strategy: &Strategy| {
            [Language::English, Language::Chinese]
                .map(|language| strategy_words(strategy, language))
        };
        let mut strategy =
            Strategy { stage: 3, offload_optimizer: Offload::Nvme, ..Strategy::default() };
        assert_eq!(both(&strategy), ["ZeRO-3 + optimizer on NVMe", "ZeRO-3 + 优化器卸载到 NVMe"]);
        strategy.offload_param = Offload::Cpu;
        strategy.micro_batch = Some(2);
        assert_eq!(
            both(&strategy),
            [
                "ZeRO-3 + optimizer on NVMe + weights on host, micro-batch size 2",
                "ZeRO-3 + 优化器卸载到 NVMe + 权重卸载，micro batch 2"
            ]
        );
        strategy.offload_optimizer = Offload::Cpu;
        strategy.gradient_accumulation_steps = Some(4);
        assert_eq!(
            both(&strategy),
            [
                "ZeRO-3 + optimizer, weights on host, micro-batch size 2 × 4 accumulation steps",
                "ZeRO-3 + 优化器、权重卸载，micro batch 2 × 累积 4"
            ]
        );
    }
}
