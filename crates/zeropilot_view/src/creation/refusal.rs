//! Words for what stands against a wish.

use zeropilot_plan::{Preset, Refusal};
use zeropilot_text::Text;

use crate::objection::Objection;

mod training;
mod zero;

pub(super) fn objection(refusal: &Refusal) -> Objection {
    match refusal {
        Refusal::NothingChosen => Objection::new(
            Text::new("neither a preset nor a stage is given", "没有指定预设，也没有指定 stage"),
            Text::new(
                "The stage decides what DeepSpeed partitions over the GPUs, and no stage suits every model.",
                "stage 决定哪些数据切分到各张卡上，没有适合所有模型的默认选择。",
            ),
            Text::new("name one of the presets {presets}, or set --stage to a number from 0 to 3", "写一个预设：{presets}；或用 --stage 指定 0 到 3"),
        )
        .with("presets", Preset::ALL.map(Preset::name).join(", ")),
        Refusal::SeveralPrecisions(names) => Objection::new(
            Text::new("{names} cannot be used together", "{names} 不能同时使用"),
            Text::new(
                "Weights have one number format. DeepSpeed rejects a config that enables both fp16 and bf16.",
                "权重只有一种数值格式；同时启用 fp16 和 bf16 的配置会被 DeepSpeed 拒绝。",
            ),
            Text::new(
                "keep --bf16 on GPUs that support it (Ampere and later), or --fp16 on older GPUs",
                "支持 bf16 的 GPU（Ampere 及以后）用 --bf16，更早的 GPU 用 --fp16",
            ),
        )
        .with("names", names.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(" + ")),
        Refusal::LossScaleWithoutFp16 => Objection::new(
            Text::new("a loss scale needs --fp16", "loss scale 只用于 --fp16"),
            Text::new(
                "The range of bf16 and fp32 is wide enough for small gradients, so DeepSpeed does not read the loss scale.",
                "bf16 和 fp32 的数值范围足以表示很小的梯度，因此 DeepSpeed 不读取 loss scale。",
            ),
            Text::new("add --fp16, or omit the loss scale", "加上 --fp16，或去掉 loss scale 选项"),
        ),
        Refusal::StaticAndDynamicLossScale => Objection::new(
            Text::new(
                "--loss-scale sets a fixed scale, but the other options are for a dynamic loss scale",
                "--loss-scale 指定固定的 loss scale，而其他选项只用于动态 loss scale",
            ),
            Text::new(
                "With a fixed loss scale, DeepSpeed does not read the window, the hysteresis or the initial power.",
                "loss scale 固定后，DeepSpeed 不会读取 window、hysteresis 和 initial power。",
            ),
            Text::new("omit --loss-scale for a dynamic loss scale, or omit the other options", "想动态调整就去掉 --loss-scale，否则去掉其他选项"),
        ),
        Refusal::LossScaleNotPositive(scale) => Objection::new(
            Text::new("the loss scale is {scale}, but must be greater than 0", "loss scale 是 {scale}，必须大于 0"),
            Text::new(
                "DeepSpeed multiplies the loss by the scale. With 0, DeepSpeed adjusts the scale itself.",
                "loss 要乘以 loss scale；0 表示由 DeepSpeed 动态调整。",
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
