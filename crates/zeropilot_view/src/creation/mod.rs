//! What `zeropilot new` says: what was written and for whom, how the batch multiplies, what to do next; and why
//! nothing was written.

mod follow_up;
pub(crate) mod json;
mod problem;
mod refusal;
mod summary;

pub use problem::CreationProblem;

use zeropilot_plan::{Recipe, Refusal, Tier};
use zeropilot_text::{Language, Text};

/// A config that was made.
#[derive(Debug, Clone, Copy)]
pub struct Created<'a> {
    /// What it says.
    pub recipe: &'a Recipe,
    /// Its file; `None` if it went to standard output.
    pub path: Option<&'a str>,
    /// Which of several sizes it is.
    pub tier: Option<Tier>,
    /// The model it was sized for, as the user named it.
    pub model: Option<&'a str>,
}

/// What was made, for people.
pub fn words(created: &[Created<'_>], language: Language) -> String {
    summary::words(created, language)
}

/// What was made, for programs: one object for one config, an array for tiers. Ends with a line break.
pub fn json(created: &[Created<'_>]) -> String {
    json::text(created)
}

/// Why there is no config.
pub fn refusals(refusals: &[Refusal], language: Language) -> String {
    refusals.iter().map(|refusal| refusal::objection(refusal).words(language)).collect()
}

/// That findings in what would be written kept it from being written.
pub fn not_written(language: Language) -> &'static str {
    Text::new("nothing was written: the DeepSpeed version above does not accept this config. Remove the \
             rejected option, or set --deepspeed-version to the version that you use", "没有写入任何文件：上述 DeepSpeed 版本不接受这样的配置；去掉相应选项，或用 --deepspeed-version 指定实际使用的版本").get(language)
}

/// Why there is no config, for programs: one array with a sentence each. Ends with a line break.
pub fn refusals_json(refusals: &[Refusal], language: Language) -> String {
    json::refusals(refusals, language)
}

#[cfg(test)]
mod tests {
    use zeropilot_plan::{Knob, OptimizerKind, Preset, SchedulerKind, Stage, Target};

    use super::*;

    /// One of each kind. The match makes sure that a new kind is added to the list.
    fn every_refusal() -> Vec<Refusal> {
        let all = vec![
            Refusal::NothingChosen,
            Refusal::PresetAndStage { preset: Preset::Zero2, stage: Stage::Three },
            Refusal::SeveralPrecisions(vec!["bf16", "fp16"]),
            Refusal::LossScaleWithoutFp16,
            Refusal::StaticAndDynamicLossScale,
            Refusal::LossScaleNotPositive(-1.0),
            Refusal::OffloadAtStage0,
            Refusal::ParameterOffloadBelowStage3(Stage::Two),
            Refusal::NvmeBelowStage3(Stage::Two),
            Refusal::NvmeWithoutPath,
            Refusal::PathWithoutNvme,
            Refusal::AsyncIoWithoutNvme,
            Refusal::KnobNotRead { knob: Knob::SubGroupSize, stage: Stage::Two },
            Refusal::KnobWithoutOffload(Knob::ParamBufferSize),
            Refusal::NotAShare { knob: Knob::OptimizerRatio, share: 2.0 },
            Refusal::OddAllgatherBucket(3),
            Refusal::Zero(Knob::ReduceBucketSize),
            Refusal::HpzDoesNotDivide { size: 3, world: 8 },
            Refusal::QuantizedGradientsWithoutReduceScatter,
            Refusal::GlobalBatchAndAccumulation,
            Refusal::GlobalBatchWithoutWorld,
            Refusal::GlobalBatchDoesNotDivide { global: 100, micro: 2, world: 8 },
            Refusal::BatchTooLarge,
            Refusal::CheckpointingNotRead(Target::HfTrainer),
            Refusal::ContiguousWithoutPartition,
            Refusal::HyperParameterWithoutOptimizer("--eps"),
            Refusal::NotAHyperParameter { optimizer: OptimizerKind::Lion, name: "--eps" },
            Refusal::OutOfRange { option: "--clip", value: -1.0 },
            Refusal::WarmupWithoutScheduler,
            Refusal::SchedulerWithoutTotal(SchedulerKind::WarmupDecayLr),
            Refusal::WarmupTooLong { warmup: 10, total: 5 },
            Refusal::Overwritten { key: "steps_per_print", target: Target::Accelerate },
        ];
        let kinds: std::collections::HashSet<_> = all.iter().map(std::mem::discriminant).collect();
        assert_eq!(kinds.len(), all.len(), "each kind once");
        all
    }

    #[test]
    fn every_refusal_has_words_in_both_languages_and_no_gap_in_them() {
        for refusal in every_refusal() {
            for language in [Language::English, Language::Chinese] {
                let objection = super::refusal::objection(&refusal);
                let words = objection.words(language);
                assert!(!words.contains(['{', '}']), "{words}");
                assert_eq!(words.starts_with("错误："), language == Language::Chinese, "{words}");
                let mut lines = words.lines().map(|line| line.trim_start().starts_with("= "));
                assert_eq!(lines.by_ref().filter(|is_reason| *is_reason).count(), 2, "{words}");
            }
        }
    }
}
