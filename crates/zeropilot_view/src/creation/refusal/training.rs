//! Batch, optimizer, schedule, checkpointing.

use zeropilot_plan::{Refusal, nearest_multiple};
use zeropilot_text::Text;

use crate::objection::Objection;

pub(super) fn objection(refusal: &Refusal) -> Option<Objection> {
    Some(match refusal {
        Refusal::GlobalBatchAndAccumulation => Objection::new(
            Text::new("--global-batch and --grad-accum cannot be used together", "--global-batch 和 --grad-accum 不能同时使用"),
            Text::new(
                "--global-batch determines the gradient accumulation steps: global batch size ÷ micro-batch size ÷ ranks.",
                "--global-batch 已经决定了梯度累积步数：全局 batch ÷ micro batch ÷ 总卡数。",
            ),
            Text::new("keep either --global-batch or --grad-accum", "--global-batch 和 --grad-accum 只写一个"),
        ),
        Refusal::GlobalBatchWithoutWorld => Objection::new(
            Text::new("--global-batch needs --world-size", "--global-batch 需要 --world-size"),
            Text::new(
                "The global batch size counts the samples of all ranks together.",
                "全局 batch 是所有 rank 的样本总数。",
            ),
            Text::new("add --world-size with the number of GPUs", "用 --world-size 写明总卡数"),
        ),
        Refusal::GlobalBatchDoesNotDivide { global, micro, world } => Objection::new(
            Text::new(
                "global batch size {global} is not a multiple of {micro} per GPU × {world} ranks",
                "全局 batch {global} 不是 micro batch {micro} × {world} 个 rank 的整数倍",
            ),
            Text::new(
                "Each gradient accumulation step uses {micro} × {world} = {product} samples. DeepSpeed rejects a global batch size that is not a multiple of this number.",
                "每个梯度累积步用 {micro} × {world} = {product} 条样本，除不尽时 DeepSpeed 会拒绝启动。",
            ),
            Text::new("choose a multiple of {product}, such as {near}", "改成 {product} 的倍数，例如 {near}"),
        )
        .with("global", global)
        .with("micro", micro)
        .with("world", world)
        .with("product", micro.saturating_mul(*world))
        .with("near", nearest_multiple(*global, micro.saturating_mul(*world))),
        Refusal::BatchTooLarge => Objection::new(
            Text::new("micro-batch size × gradient accumulation steps × ranks is too large", "micro batch × 梯度累积步数 × 总卡数超出范围"),
            Text::new("The product does not fit in 64 bits.", "乘积超出了 64 位整数的范围。"),
            Text::new("check the numbers for typos", "检查这些数是否写错"),
        ),
        Refusal::CheckpointingNotRead(target) => Objection::new(
            Text::new(
                "`activation_checkpointing` has no effect on models that {target} trains",
                "`activation_checkpointing` 对 {target} 训练的模型不生效",
            ),
            Text::new(
                "The section configures `deepspeed.checkpointing`, which the model's own code must call. Models from \
                 the transformers library use PyTorch's implementation instead.",
                "这个配置段设置的是 `deepspeed.checkpointing`，要由模型代码自己调用；transformers 的模型用的是 PyTorch 自带的实现。",
            ),
            Text::new(
                "omit the section and turn on gradient checkpointing instead: --gradient_checkpointing, or \
                 model.gradient_checkpointing_enable()",
                "去掉这个配置段，改为开启梯度检查点：--gradient_checkpointing，或 model.gradient_checkpointing_enable()",
            ),
        )
        .with("target", target),
        Refusal::ContiguousWithoutPartition => Objection::new(
            Text::new("--number-checkpoints needs --partition-activations", "--number-checkpoints 需要 --partition-activations"),
            Text::new(
                "DeepSpeed allocates one buffer for all activation checkpoints only if it partitions them over the model-parallel ranks.",
                "只有把激活值切分到各个模型并行 rank 时，DeepSpeed 才会把所有检查点放进同一块缓冲区。",
            ),
            Text::new("add --partition-activations, or remove --number-checkpoints", "加上 --partition-activations，或去掉 --number-checkpoints"),
        ),
        Refusal::Overwritten { key, target } => Objection::new(
            Text::new("{target} overwrites `{key}`", "{target} 会覆盖 `{key}`"),
            Text::new("The training program replaces the value in the file before DeepSpeed reads it.", "在 DeepSpeed 读取之前，训练程序就已经替换了文件里的值。"),
            Text::new("omit the key and use the logging of the training program (--logging_steps)", "去掉这个键，用训练程序的日志设置（--logging_steps）"),
        )
        .with("key", key)
        .with("target", target),
        other => return learning(other),
    })
}

fn learning(refusal: &Refusal) -> Option<Objection> {
    Some(match refusal {
        Refusal::HyperParameterWithoutOptimizer(name) => Objection::new(
            Text::new(
                "{name} needs an optimizer, and the config has none",
                "{name} 是优化器的参数，而配置里没有优化器",
            ),
            Text::new(
                "Your script builds the optimizer, so DeepSpeed would not read this setting.",
                "优化器由训练脚本创建，写在配置里不会被读取。",
            ),
            Text::new(
                "set the value in the optimizer of your script, or add --optimizer adamw",
                "写到脚本的优化器里，或加上 --optimizer adamw",
            ),
        )
        .with("name", name),
        Refusal::NotAHyperParameter { optimizer, name } => Objection::new(
            Text::new("{optimizer} has no {name}", "{optimizer} 没有 {name}"),
            Text::new(
                "DeepSpeed passes the setting to the optimizer, which rejects it.",
                "DeepSpeed 会把这个参数原样传给优化器，优化器会报错。",
            ),
            Text::new("omit the option", "去掉这个选项"),
        )
        .with("optimizer", optimizer.type_name())
        .with("name", name),
        Refusal::OutOfRange { option, value } => Objection::new(
            Text::new("{option} cannot be {value}", "{option} 不能是 {value}"),
            Text::new(
                "Training does not work with this value, and DeepSpeed does not check it.",
                "用这个值无法训练，而 DeepSpeed 不会检查它。",
            ),
            Text::new("check the number for a typo", "检查这个数是否写错"),
        )
        .with("option", option)
        .with("value", value),
        Refusal::WarmupWithoutScheduler => Objection::new(
            Text::new(
                "steps and warmup need a scheduler, and the config has none",
                "步数和 warmup 是学习率调度器的参数，而配置里没有调度器",
            ),
            Text::new(
                "Your script builds the scheduler, so DeepSpeed would not read these settings.",
                "调度器由训练脚本创建，写在配置里不会被读取。",
            ),
            Text::new(
                "add --scheduler WarmupDecayLR, or omit these settings",
                "加上 --scheduler WarmupDecayLR，或去掉这些选项",
            ),
        ),
        Refusal::SchedulerWithoutTotal(kind) => Objection::new(
            Text::new("{kind} needs --total-steps", "{kind} 需要 --total-steps"),
            Text::new(
                "The learning rate decreases until training ends, so DeepSpeed needs the number of steps.",
                "学习率一直下降到训练结束，因此 DeepSpeed 需要总步数。",
            ),
            Text::new(
                "add --total-steps, or use WarmupLR, which stays at its maximum",
                "加上 --total-steps，或改用 WarmupLR，它升到最高值后保持不变",
            ),
        )
        .with("kind", kind.type_name()),
        Refusal::WarmupTooLong { warmup, total } => Objection::new(
            Text::new(
                "a warmup of {warmup} steps does not end within {total} steps",
                "warmup {warmup} 步，但总共只训练 {total} 步",
            ),
            Text::new("The learning rate would never reach its maximum.", "学习率永远升不到最高值。"),
            Text::new(
                "shorten the warmup; 3% to 10% of all steps is common",
                "缩短 warmup，通常取总步数的 3% 到 10%",
            ),
        )
        .with("warmup", warmup)
        .with("total", total),
        _ => return None,
    })
}
