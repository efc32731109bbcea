//! Words for what stands against a wish.

use zeropilot_plan::{Preset, Refusal};
use zeropilot_text::Text;

use crate::objection::Objection;

mod training;
mod zero;

pub(super) fn objection(refusal: &Refusal) -> Objection {
    match refusal {
        Refusal::NothingChosen => Objection::new(
            Text::new("neither a preset nor a stage was named", "没有指定预设，也没有指定 stage"),
            Text::new(
                "the stage decides what is partitioned over the GPUs, and there is no choice that suits every model",
                "stage 决定哪些数据切分到各张 GPU 上，没有适合所有模型的默认选择。",
            ),
            Text::new("name one of {presets}, or --stage 0 to 3", "写一个预设：{presets}；或用 --stage 指定 0 到 3"),
        )
        .with("presets", Preset::ALL.map(Preset::name).join(", ")),
        Refusal::SeveralPrecisions(names) => Objection::new(
            Text::new("{names} cannot be used together", "{names} 不能同时使用"),
            Text::new(
                "weights have one number format; DeepSpeed rejects a config that enables fp16 and bf16",
                "权重只有一种数值格式；同时启用 fp16 和 bf16 的配置会被 DeepSpeed 拒绝。",
            ),
            Text::new(
                "keep --bf16 on GPUs that support it (Ampere and later), --fp16 on older ones",
                "支持 bf16 的 GPU（Ampere 及以后）用 --bf16，更早的用 --fp16",
            ),
        )
        .with("names", names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(" + ")),
        Refusal::LossScaleWithoutFp16 => Objection::new(
            Text::new("a loss scale needs --fp16", "loss scale 只用于 --fp16"),
            Text::new(
                "the range of bf16 and fp32 is wide enough for small gradients, so DeepSpeed uses no loss scale with them",
                "bf16 和 fp32 的数值范围足以表示很小的梯度，因此 DeepSpeed 不读取 loss scale。",
            ),
            Text::new("add --fp16, or omit the loss scale", "加上 --fp16，或去掉 loss scale 选项"),
        ),
        Refusal::StaticAndDynamicLossScale => Objection::new(
            Text::new(
                "--loss-scale sets a fixed scale, but the other options are for a dynamic loss scale",
                "--loss-scale 固定了数值，而其他选项是用来动态调整的",
            ),
            Text::new(
                "with a fixed scale, DeepSpeed reads neither window nor hysteresis nor the initial power",
                "数值固定后，DeepSpeed 不会读取 window、hysteresis 和 initial power。",
            ),
            Text::new("omit --loss-scale for a dynamic loss scale, or omit the other options", "想动态调整就去掉 --loss-scale，否则只保留它"),
        ),
        Refusal::LossScaleNotPositive(scale) => Objection::new(
            Text::new("the loss scale {scale} is not above zero", "loss scale {scale} 不大于 0"),
            Text::new(
                "the loss is multiplied by it; 0 makes DeepSpeed adjust the scale itself",
                "loss 要乘以它；0 表示由 DeepSpeed 动态调整。",
            ),
            Text::new("omit --loss-scale for a dynamic loss scale", "想动态调整就不要写 --loss-scale"),
        )
        .with("scale", scale),
        other => zero::objection(other).or_else(|| training::objection(other)).unwrap_or_else(unknown),
    }
}

/// Every refusal has words; a test holds all of them against this.
fn unknown() -> Objection {
    let text = Text::new("zeropilot cannot write this config", "无法写出这样的配置");
    Objection::new(text, text, text)
}
