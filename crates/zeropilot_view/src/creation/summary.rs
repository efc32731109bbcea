//! A config that was made, in a few lines.

use unicode_width::UnicodeWidthStr as _;
use zeropilot_plan::{
    Batch, DEFAULT_LEARNING_RATE, Device, LossScale, Offload, Precision, Reason, Recipe, SizedKey,
    Stage, Target,
};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::ElementSize;

use super::{Created, follow_up};
use crate::{escaped, strategy};

pub(super) fn words(created: &[Created<'_>], language: Language) -> String {
    let mut words = String::new();
    for config in created {
        words.push_str(&saved(config, language));
    }
    let Some(first) = created.first() else { return words };
    words.push('\n');
    words.push_str(&lines(created, first.recipe, language));
    words.push_str(&follow_up::words(created, language));
    words
}

fn saved(created: &Created<'_>, language: Language) -> String {
    let Some(path) = created.path else { return String::new() };
    let path = escaped(path);
    tr!(language, "DeepSpeed config saved to {path}\n", "DeepSpeed 配置已保存至 {path}\n")
}

/// Names in one column, what they are in the next.
fn lines(created: &[Created<'_>], recipe: &Recipe, language: Language) -> String {
    let mut rows = vec![
        (Text::new("for", "用于"), reader(recipe.target, language)),
        (Text::new("ZeRO", "ZeRO"), stage(recipe, language)),
        (Text::new("precision", "精度"), precision(recipe.precision, language)),
    ];
    for config in created {
        let mut batch = batch(config.recipe.batch, language);
        if let Some(tier) = config.tier {
            batch = format!("{}: {batch}", tier.name());
        }
        rows.push((Text::new("batch", "batch"), batch));
    }
    rows.push((Text::new("optimizer", "优化器"), optimizer(recipe, language)));
    let is_tier = created.iter().any(|config| config.tier.is_some());
    if is_tier {
        rows.extend(created.iter().filter_map(|config| Some((BUFFERS, tier(config, language)?))));
    } else {
        rows.extend(recipe.sized.iter().map(|key| (SIZED, sized(key, recipe, language))));
    }
    let widest = rows.iter().map(|(name, _)| name.get(language).width()).max().unwrap_or(0);
    let mut before = "";
    let mut text = String::new();
    for (name, row) in rows {
        let name = name.get(language);
        let shown = if name == before { "" } else { name };
        before = name;
        let gap = widest - shown.width() + 2;
        text.push_str(&format!("  {shown}{:gap$}{row}\n", ""));
    }
    text
}

const SIZED: Text = Text::new("sizes", "大小");
const BUFFERS: Text = Text::new("buffers", "缓冲区");

fn reader(target: Target, language: Language) -> String {
    let name = match target {
        Target::DeepSpeed => Text::new(
            "plain DeepSpeed: numbers only, no \"auto\"",
            "直接使用 DeepSpeed：全部写数值，没有 \"auto\"",
        ),
        Target::HfTrainer => Text::new(
            "HF Trainer: \"auto\" for keys that it fills in",
            "HF Trainer：由它填的键写 \"auto\"",
        ),
        Target::Accelerate => Text::new(
            "accelerate: \"auto\" only for keys that it fills in",
            "accelerate：只有它会填的键写 \"auto\"",
        ),
        Target::Swift => {
            Text::new("ms-swift, which trains with the HF Trainer", "ms-swift（底层是 HF Trainer）")
        }
        Target::LlamaFactory => Text::new(
            "LLaMA-Factory, which trains with the HF Trainer",
            "LLaMA-Factory（底层是 HF Trainer）",
        ),
        Target::Axolotl => {
            Text::new("axolotl, which trains with the HF Trainer", "axolotl（底层是 HF Trainer）")
        }
    };
    name.get(language).to_owned()
}

fn stage(recipe: &Recipe, language: Language) -> String {
    let stage = recipe.zero.stage();
    let partitioned = match stage {
        Stage::Zero => Text::new("nothing partitioned", "不切分"),
        Stage::One => Text::new("optimizer states partitioned", "切分优化器状态"),
        Stage::Two => {
            Text::new("optimizer states and gradients partitioned", "切分优化器状态和梯度")
        }
        Stage::Three => Text::new(
            "optimizer states, gradients and weights partitioned",
            "切分优化器状态、梯度和权重",
        ),
    };
    let mut text = tr!(
        language,
        ("stage {}: {}", stage.number(), partitioned.en),
        ("stage {}：{}", stage.number(), partitioned.zh)
    );
    let optimizer = recipe.zero.optimizer_offload().map(|offload| place(&offload, language));
    let weights = recipe.zero.parameter_offload().map(|offload| place(offload, language));
    let states = Text::new("optimizer states", "优化器状态");
    let moved = match (optimizer, weights) {
        (Some(place), Some(other)) if place == other => {
            vec![(Text::new("optimizer states and weights", "优化器状态和权重"), place)]
        }
        (optimizer, weights) => {
            let weights = weights.map(|place| (Text::new("weights", "权重"), place));
            optimizer.map(|place| (states, place)).into_iter().chain(weights).collect()
        }
    };
    for (what, place) in moved {
        text.push_str(&tr!(language, ("; {} in {place}", what.en), ("；{}放在{place}", what.zh)));
    }
    text
}

fn place(offload: &Offload, language: Language) -> String {
    let path = offload.nvme_path.as_deref().unwrap_or_default();
    match offload.device() {
        Device::Cpu => tr!(language, "host memory", "主机内存"),
        Device::Nvme => tr!(language, "files under {}", " {} 下的文件里", escaped(path)),
    }
}

fn precision(precision: Precision, language: Language) -> String {
    let scale = match precision {
        Precision::Bf16 => return "bf16".to_owned(),
        Precision::Fp32 => return "fp32".to_owned(),
        Precision::Fp16(scale) => scale,
    };
    match scale {
        LossScale::Static(scale) => {
            tr!(language, "fp16, loss scale fixed at {scale}", "fp16，loss scale 固定为 {scale}")
        }
        LossScale::Dynamic(_) => {
            tr!(language, "fp16, dynamic loss scale", "fp16，动态 loss scale")
        }
    }
}

fn batch(batch: Batch, language: Language) -> String {
    let (micro, accumulation) = (batch.micro, batch.accumulation);
    let accumulated = strategy::accumulation(accumulation);
    let (Some(world), Some(global)) = (batch.world, batch.global()) else {
        return tr!(
            language,
            "{micro} per GPU × {accumulated} × the number of ranks (set --world-size)",
            "每卡 {micro} × 梯度累积 {accumulation} × 总卡数（用 --world-size 指定）"
        );
    };
    let ranks = if world.get() == 1 { "rank" } else { "ranks" };
    tr!(
        language,
        "{micro} per GPU × {accumulated} × {world} {ranks} = global batch size {global}",
        "每卡 {micro} × 梯度累积 {accumulation} × {world} 个 rank = 全局 batch {global}"
    )
}

fn optimizer(recipe: &Recipe, language: Language) -> String {
    let Some(kind) = recipe.optimizer else {
        let is_trainer = recipe.target.is_trainer();
        return match is_trainer {
            true => tr!(
                language,
                "the Trainer's own (--optim, --learning_rate)",
                "由 Trainer 创建（--optim、--learning_rate）"
            ),
            false => tr!(language, "built by your script", "由训练脚本创建"),
        };
    };
    let name = kind.type_name();
    match (recipe.hyper_parameters.learning_rate, recipe.target.fills_placeholders()) {
        (_, true) => tr!(language, "{name}, built by DeepSpeed", "{name}，由 DeepSpeed 创建"),
        (Some(rate), false) => {
            tr!(language, "{name}, learning rate {rate:e}", "{name}，学习率 {rate:e}")
        }
        (None, false) => tr!(
            language,
            "{name}, learning rate {DEFAULT_LEARNING_RATE:e}, HF Trainer's default (set yours with --learning-rate)",
            "{name}，学习率 {DEFAULT_LEARNING_RATE:e}（HF Trainer 的默认值，用 --learning-rate 指定）"
        ),
    }
}

fn sized(key: &SizedKey, recipe: &Recipe, language: Language) -> String {
    let reason = match key.reason {
        Reason::SquareMatrix => {
            Text::new("hidden², one square matrix of the model", "hidden²，即模型里一个方阵的大小")
        }
        Reason::WholeModel => Text::new("the size of the whole model", "整个模型的大小"),
        Reason::LinkPayload => Text::new(
            "keeps the link busy for nine tenths of the time",
            "使链路九成的时间都在传输数据",
        ),
        Reason::NineTenths => Text::new("nine tenths of the reduce bucket", "规约通信桶的九成"),
        Reason::SmallParameters => Text::new(
            "10 × hidden: norms and biases stay on every rank",
            "10 × hidden：norm 和 bias 在每个 rank 上常驻",
        ),
        Reason::LargestPartition => Text::new(
            "one rank's shard of the largest parameter must fit",
            "要放得下最大的参数在一个 rank 上的分片",
        ),
    };
    let bytes = key.elements.at(element_size(recipe.precision));
    tr!(
        language,
        ("{} {} elements ({bytes}): {}", key.knob.path(), key.elements, reason.en),
        ("{} {} 个元素（{bytes}）：{}", key.knob.path(), key.elements, reason.zh)
    )
}

fn element_size(precision: Precision) -> ElementSize {
    match precision {
        Precision::Bf16 | Precision::Fp16(_) => ElementSize::Two,
        Precision::Fp32 => ElementSize::Four,
    }
}

fn tier(created: &Created<'_>, language: Language) -> Option<String> {
    let knob = zeropilot_plan::Knob::ReduceBucketSize;
    let elements = created.recipe.elements(knob)?;
    let bytes = elements.at(element_size(created.recipe.precision));
    let name = created.tier?.name();
    Some(tr!(
        language,
        "{name}: {} {elements} elements ({bytes})",
        "{name}: {} {elements} 个元素（{bytes}）",
        knob.key()
    ))
}
