//! Changes that lower memory, as one would write them down.

use zeropilot_config::settings::Stage;
use zeropilot_step::memory::Lever;
use zeropilot_text::{Language, Text, tr};

/// The number of a stage.
pub(crate) fn stage_number(stage: Stage) -> u8 {
    match stage {
        Stage::Zero => 0,
        Stage::One => 1,
        Stage::Two => 2,
        Stage::Three => 3,
    }
}

/// What to write, in a config or on a command line.
pub(crate) fn change(lever: Lever, language: Language) -> String {
    let text = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language).to_owned();
    match lever {
        Lever::Stage(stage) => format!("\"stage\": {}", stage_number(stage)),
        Lever::OffloadOptimizer => "\"offload_optimizer\": {\"device\": \"cpu\"}".to_owned(),
        Lever::OffloadParam => "\"offload_param\": {\"device\": \"cpu\"}".to_owned(),
        Lever::Checkpointing => {
            text("gradient checkpointing (more compute)", "开启梯度检查点（多算一遍前向）")
        }
        Lever::MicroBatch(smaller) => tr!(
            language,
            "\"train_micro_batch_size_per_gpu\": {smaller}, twice the gradient accumulation steps",
            "\"train_micro_batch_size_per_gpu\": {smaller}，梯度累积步数翻倍"
        ),
        Lever::FusedLoss => text(
            "a fused linear cross entropy (Liger Kernel)",
            "使用融合的 linear + cross entropy（Liger Kernel）",
        ),
        Lever::FlashAttention => text("flash attention", "使用 FlashAttention"),
        Lever::PrecomputedReference => text(
            "precompute_ref_log_probs=True: no reference model during training",
            "precompute_ref_log_probs=True：训练时不需要参考模型",
        ),
        Lever::RolloutSleep => text(
            "vllm_enable_sleep_mode=True: vLLM frees GPU memory during training",
            "vllm_enable_sleep_mode=True：训练期间 vLLM 释放显存",
        ),
        Lever::ReduceBucket(size) => format!("\"reduce_bucket_size\": {}", size.0),
        Lever::PrefetchBucket(size) => format!("\"stage3_prefetch_bucket_size\": {}", size.0),
        Lever::LiveParameters(size) => format!(
            "\"stage3_max_live_parameters\": {0}, \"stage3_max_reuse_distance\": {0}",
            size.0
        ),
        Lever::SubGroup(size) => format!("\"sub_group_size\": {}", size.0),
        Lever::OptimizerOnGpu => text(
            "remove offload_optimizer: optimizer states on the GPU",
            "去掉 offload_optimizer：优化器状态放回显存",
        ),
        Lever::ParamOnGpu => {
            text("remove offload_param: weights on the GPU", "去掉 offload_param：权重放回显存")
        }
    }
}

/// Its name in machine formats.
pub(crate) fn name(lever: Lever) -> &'static str {
    match lever {
        Lever::Stage(_) => "stage",
        Lever::OffloadOptimizer => "offload_optimizer",
        Lever::OffloadParam => "offload_param",
        Lever::Checkpointing => "gradient_checkpointing",
        Lever::MicroBatch(_) => "train_micro_batch_size_per_gpu",
        Lever::FusedLoss => "fused_loss",
        Lever::FlashAttention => "flash_attention",
        Lever::PrecomputedReference => "precompute_ref_log_probs",
        Lever::RolloutSleep => "vllm_enable_sleep_mode",
        Lever::ReduceBucket(_) => "reduce_bucket_size",
        Lever::PrefetchBucket(_) => "stage3_prefetch_bucket_size",
        Lever::LiveParameters(_) => "stage3_max_live_parameters",
        Lever::SubGroup(_) => "sub_group_size",
        Lever::OptimizerOnGpu => "no_offload_optimizer",
        Lever::ParamOnGpu => "no_offload_param",
    }
}
