//! The report for people: what fills the GPU and the host, whether it fits, and what would lower it.

use unicode_width::UnicodeWidthStr;
use zeropilot_ask::Compared;
use zeropilot_cluster::{Cluster, Device};
use zeropilot_config::settings::{OffloadDevice, Precision, Zero};
use zeropilot_model::{Model, PartKind};
use zeropilot_record::Offload;
use zeropilot_step::conformal::OwnRuns;
use zeropilot_step::lower::{Fidelity, Images, Method, Recipe, image_tokens};
use zeropilot_step::memory::{Answer, Interval, Phase, Question, RolloutMemory};
use zeropilot_step::shape::{Checkpoints, LongContext, MlpTiles};
use zeropilot_step::zero::{Engine, Place};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::{Bytes, Elements, Estimate};

use super::MemoryReport;
use super::bars::bar;
use super::part::{Part, parts};
use super::phase;
use super::relief::{change, stage_number};
use super::task;
use super::verdict::{Fit, fit};
use crate::simulate::human::grouped;
use crate::strategy::offload;
use crate::{Layout, escaped, provenance};

/// Columns of the bars.
const BAR: usize = 26;
/// Changes that are named.
pub(super) const RELIEFS: usize = 3;

pub(super) fn report(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let mut text = format!("{}\n", headline(report.name, &report.question, language));
    text.push_str(&format!("  {}\n", batch(&report.question, language)));
    let frozen = &report.answer.on_gpu.frozen;
    text.push_str(&task::lines(
        report.task,
        &report.question.recipe.task,
        report.question.micro_batch,
        frozen,
        language,
    ));
    text.push_str(&parts_line(report.question.model, report.question.recipe, language));
    text.push_str(&base_line(report.question.model, report.question.recipe, language));
    if let Some(note) = assumption(report, language) {
        text.push_str(&format!("  {note}\n"));
    }
    text.push('\n');
    text.push_str(&device(report, layout));
    text.push('\n');
    text.push_str(&host(report, layout));
    text.push_str(&provenance::uncovered(report.provenance, language));
    text.push('\n');
    text.push_str(&moment(report.answer, language));
    text.push_str(&reliefs(report, language));
    if let Some(note) = fidelity(report.answer, language) {
        text.push_str(&format!("\n{note}\n"));
    }
    text.push_str(&provenance::below(report.provenance, language));
    text
}

/// "Qwen/Qwen3-8B, full fine-tuning, ZeRO-3, bf16, 5 × 44GB".
pub(super) fn headline(name: &str, question: &Question<'_>, language: Language) -> String {
    let separator = Text::new(", ", "，").get(language);
    [
        escaped(name).into_owned(),
        method(question.model, question.recipe, language).to_owned(),
        match question.recipe.engine {
            Engine::DeepSpeed => zero(question.zero, language),
            Engine::PyTorch => tr!(language, "without DeepSpeed", "不用 DeepSpeed"),
        },
        precision(question.resolved.precision()).to_owned(),
        gpus(question.cluster, language),
    ]
    .join(separator)
}

fn method(model: &Model, recipe: &Recipe, language: Language) -> &'static str {
    let count = model.count();
    let frozen = count.total.0 - count.trainable.0;
    match recipe.method {
        // A class may freeze a little by itself, as Whisper its sinusoids.
        Method::Full if frozen > count.total.0 / 50 => {
            Text::new("training part of the parameters", "只训练部分参数")
        }
        Method::Full => Text::new("full fine-tuning", "全参数训练"),
        Method::Lora(_) if recipe.method.base(model).is_none() => Text::new("LoRA", "LoRA"),
        Method::Lora(_) | Method::QLora { .. } => Text::new("QLoRA", "QLoRA"),
    }
    .get(language)
}

fn zero(zero: &Zero, language: Language) -> String {
    let to = |device: Option<&OffloadDevice>| match device {
        None => Offload::None,
        Some(OffloadDevice::Cpu) => Offload::Cpu,
        Some(OffloadDevice::Nvme(_)) => Offload::Nvme,
    };
    let optimizer = to(zero.offload_optimizer.as_ref().map(|offload| &offload.device));
    let weights = to(zero.offload_param.as_ref().map(|offload| &offload.device));
    format!("ZeRO-{}{}", stage_number(zero.stage), offload(optimizer, weights, language))
}

pub(crate) fn precision(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 => "fp32",
        Precision::Fp16 { .. } => "fp16",
        Precision::Bf16 { .. } => "bf16",
    }
}

fn gpus(cluster: &Cluster, language: Language) -> String {
    let (nodes, count) = (cluster.gpus.layout.nodes, cluster.gpus.layout.gpus_per_node);
    let each = match cluster.gpus.device {
        Device::Unknown if cluster.computes_on_host() => {
            tr!(language, "{count} CPU ranks", "{count} 个 CPU rank")
        }
        Device::Unknown if count == 1 => tr!(language, "1 GPU", "1 张卡"),
        Device::Unknown => tr!(language, "{count} GPUs", "{count} 张卡"),
        Device::Memory(stated) => format!("{count} × {stated}"),
        Device::Accelerator(accelerator) => format!("{count} × {}", accelerator.name),
    };
    match nodes {
        1 => each,
        nodes => tr!(language, "{nodes} nodes × {each}", "{nodes} 个节点 × {each}"),
    }
}

/// That the number format is a guess.
pub(super) fn assumption(report: &MemoryReport<'_>, language: Language) -> Option<String> {
    let format = report.assumed?.name();
    Some(tr!(
        language,
        "precision is \"auto\" in the config: zeropilot assumes {format}; change it with --precision",
        "配置里的精度是 \"auto\"，这里按 {format} 计算；可用 --precision 指定"
    ))
}

pub(super) fn batch(question: &Question<'_>, language: Language) -> String {
    batch_words(question.micro_batch, question.recipe, language)
}

fn batch_words(micro: u64, recipe: &Recipe, language: Language) -> String {
    let length = recipe.sequence;
    let target = recipe.target.map_or(String::new(), |target| {
        tr!(language, ", targets of {target} tokens", "，目标序列 {target} token")
    });
    let LongContext { sequence_ranks, checkpoints, mlp_tiles } = recipe.long_context;
    let shared = match sequence_ranks {
        0 | 1 => String::new(),
        ranks => tr!(language, ", each shared by {ranks} GPUs", "，每条由 {ranks} 张卡共同处理"),
    };
    let split = match recipe.tensor.ranks {
        0 | 1 => String::new(),
        ranks => tr!(language, ", layers split over {ranks} GPUs", "，每层切分到 {ranks} 张卡"),
    };
    let tiled = match mlp_tiles {
        MlpTiles::Whole => "",
        _ => Text::new(", MLP in tiles", "，MLP 分块计算").get(language),
    };
    let tiled_loss = match recipe.loss.bypasses_model() {
        true => Text::new(", loss in shards", "，loss 分块计算").get(language),
        false => "",
    };
    let checkpointing = match recipe.checkpointing {
        true if checkpoints == Checkpoints::OnHost => {
            Text::new(", with activation checkpoints in host memory", "，梯度检查点放在主机内存")
                .get(language)
        }
        true => Text::new(", with gradient checkpointing", "，开启梯度检查点").get(language),
        false => Text::new(", without gradient checkpointing", "，未开启梯度检查点").get(language),
    };
    let sequences = if micro == 1 { "sequence" } else { "sequences" };
    tr!(
        language,
        ("micro-batch of {micro} {sequences} of {length} tokens{shared}{split}{target}{checkpointing}{tiled}{tiled_loss}"),
        ("micro batch：{micro} 条 {length} token 的序列{shared}{split}{target}{checkpointing}{tiled}{tiled_loss}")
    )
}

/// The parts of a model that sees or hears, and what its images become; empty for a language model alone.
pub(super) fn parts_line(model: &Model, recipe: &Recipe, language: Language) -> String {
    let parts = model.parts();
    if parts.len() < 2 {
        return String::new();
    }
    let list: Vec<String> = parts
        .iter()
        .map(|part| {
            let (size, name) = (billions(part.elements), part_name(part.kind).get(language));
            let is_frozen = part.trainable.0 == 0 && matches!(recipe.method, Method::Full);
            match is_frozen {
                true => tr!(language, "{size} {name} (frozen)", "{name} {size}（冻结）"),
                false => tr!(language, "{size} {name}", "{name} {size}"),
            }
        })
        .collect();
    let list = list.join(Text::new(", ", "，").get(language));
    let total = billions(model.elements());
    let images = images_words(model, recipe, language).unwrap_or_default();
    tr!(language, "  {total} parameters: {list}\n{images}", "  {total} 参数：{list}\n{images}")
}

/// What is quantized of the base, and what is not; empty where nothing is.
fn base_line(model: &Model, recipe: &Recipe, language: Language) -> String {
    let sized = recipe.method.base(model).and_then(|base| Some((base.size(model)?, base.format)));
    let Some((size, format)) = sized else { return String::new() };
    let (quantized, kept) = (billions(size.quantized), billions(size.kept));
    let bytes = size.stored.total();
    tr!(
        language,
        "  base model in {format}: {quantized} parameters use {bytes}; {kept} parameters are not quantized\n",
        "  基座模型为 {format}：{quantized} 参数量化后占 {bytes}；{kept} 参数不量化\n"
    )
}

fn images_words(model: &Model, recipe: &Recipe, language: Language) -> Option<String> {
    let tokens = image_tokens(model, recipe)?;
    let length = recipe.sequence;
    let Some(Images::PerSequence { count, size, .. }) = recipe.images else { return None };
    let images = if count == 1 { "image" } else { "images" };
    Some(tr!(
        language,
        "  {count} {images} of {size} in each sequence: {tokens} of its {length} tokens\n",
        "  每条序列 {count} 张 {size} 的图像：占 {length} 个 token 中的 {tokens} 个\n"
    ))
}

fn part_name(kind: PartKind) -> Text {
    match kind {
        PartKind::Vision => Text::new("vision", "视觉"),
        PartKind::Audio => Text::new("audio", "音频"),
        PartKind::Projector => Text::new("projector", "投影层"),
        PartKind::Language => Text::new("language", "语言模型"),
    }
}

/// "+12%".
fn percent(error: f64) -> String {
    format!("{:+.0}%", error * 100.0)
}

/// "8.29 B", "45 M".
#[allow(clippy::cast_precision_loss)]
pub(super) fn billions(elements: Elements) -> String {
    match elements.0 as f64 {
        count if count >= 1e9 => format!("{:.2} B", count / 1e9),
        count => format!("{:.0} M", count / 1e6),
    }
}

/// What stands above a comparison: all that its ways have in common.
pub(super) fn common(name: &str, compared: &Compared, language: Language) -> String {
    let separator = Text::new(", ", "，").get(language);
    let words = [
        escaped(name).into_owned(),
        method(&compared.model, &compared.recipe, language).to_owned(),
        precision(compared.precision).to_owned(),
        gpus(&compared.cluster, language),
    ];
    let batch = batch_words(compared.micro_batch, &compared.recipe, language);
    let parts = parts_line(&compared.model, &compared.recipe, language)
        + &base_line(&compared.model, &compared.recipe, language);
    let left_out = provenance::not_modelled(&compared.provenance.not_modelled, language);
    let notes = provenance::notes(&compared.provenance.notes, language);
    format!("{}\n  {batch}\n{parts}{left_out}{notes}\n", words.join(separator))
}

fn device(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, language) = (report.answer, layout.language);
    let need = answer.device();
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes);
    let mut text = device_line(report, layout);
    let rows = named(device_rows(answer), language);
    let whole = capacity.map_or(need.expected(), |capacity| capacity.expected()).0;
    text.push_str(&table(&rows, need.expected().0, whole.max(need.expected().0)));
    text.push_str(&kinds(answer, language));
    text.push_str(&rollout(answer, language));
    text
}

/// The same need as PyTorch and the driver count it, and what its bounds rest on.
fn kinds(answer: &Answer, language: Language) -> String {
    let [allocated, reserved, shown] =
        [answer.allocated(), answer.reserved(), answer.device()].map(Estimate::expected);
    let basis = bounds(answer, language);
    tr!(
        language,
        "  allocated {allocated}, reserved {reserved}, in nvidia-smi {shown}; {basis}\n",
        "  allocated {allocated}，reserved {reserved}，nvidia-smi 显示 {shown}；{basis}\n"
    )
}

/// What the bounds of a need rest on.
pub(super) fn bounds(answer: &Answer, language: Language) -> String {
    let Interval { rows, sources, inside, own, .. } = answer.interval;
    let published = tr!(
        language,
        "{inside} of {rows} published runs ({sources} sources) are within the bounds predicted for them",
        "{rows} 次公开实测（{sources} 个来源）中有 {inside} 次落在预测的区间内"
    );
    match own.map(|own| (own.decide, own_bounds(own, language))) {
        None => published,
        Some((true, own)) => own,
        Some((false, own)) => tr!(language, "{published}; {own}", "{published}；{own}"),
    }
}

/// What the user's own runs have to do with bounds.
pub(crate) fn own_bounds(own: OwnRuns, language: Language) -> String {
    let runs = own.runs;
    match own.decide {
        true => tr!(
            language,
            "bounds from {runs} of your own jobs on this hardware (`zeropilot accuracy`)",
            "上下界来自你在这种硬件上的 {runs} 个任务（`zeropilot accuracy`）"
        ),
        false => tr!(
            language,
            "all {runs} of your own jobs on this hardware are within these bounds (`zeropilot accuracy`)",
            "你在这种硬件上的 {runs} 个任务都在区间内（`zeropilot accuracy`）"
        ),
    }
}

/// "GPU memory, rank 0: 37.2 GiB of 41.0 GiB: fits".
pub(super) fn device_line(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let answer = report.answer;
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes);
    let head = tr!(layout.language, "GPU memory, rank {}", "显存（rank {}）", answer.rank);
    line(&head, answer.device(), capacity, layout)
}

/// What fills a GPU at its fullest.
pub(super) fn device_rows(answer: &Answer) -> Vec<(Part, Bytes)> {
    let mut rows = parts(answer.at_peak(), &[Place::Device]);
    let rollout = answer.rollout_at_peak();
    if rollout.0 > 0 {
        rows.push((Part::Rollout, rollout));
        rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    }
    let tensors: Bytes = rows.iter().map(|(_, bytes)| *bytes).sum();
    rows.push((Part::Runtime, answer.device().expected().saturating_sub(tensors)));
    rows
}

/// What vLLM takes of the same GPUs.
fn rollout(answer: &Answer, language: Language) -> String {
    let Some(RolloutMemory { share, beside_training, weights, cache, sleeps, .. }) = answer.rollout
    else {
        return String::new();
    };
    let takes = if sleeps {
        tr!(
            language,
            "vLLM uses {share} of GPU memory on each GPU during generation and {beside_training} during training",
            "vLLM 生成时占用每张卡 {share}，训练时占用 {beside_training}"
        )
    } else {
        tr!(
            language,
            "vLLM always uses {share} of GPU memory on each GPU",
            "vLLM 始终占用每张卡 {share}"
        )
    };
    let tokens = answer.rollout.and_then(|rollout| rollout.cached_tokens());
    let holds = tokens.map(|tokens| {
        let tokens = grouped(tokens as f64);
        tr!(language, ", about {tokens} tokens", "，约 {tokens} 个 token")
    });
    let holds = holds.unwrap_or_default();
    tr!(
        language,
        "  {takes}: {weights} for weights, {cache} for the KV cache{holds}; from the source code of vLLM and its trainers, not measured\n",
        "  {takes}：权重 {weights}，KV cache {cache}{holds}；根据 vLLM 及训练器的源码得出，未经实测\n"
    )
}

/// "Host memory: 12.0 GiB".
pub(super) fn host_line(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, ranks) = (report.answer, report.answer.ranks_per_host);
    let head = match ranks {
        1 => tr!(layout.language, "Host memory", "主机内存"),
        _ => tr!(
            layout.language,
            "Host memory, {ranks} processes of {}",
            "主机内存（{ranks} 个 rank，每个 {}）",
            answer.host().expected()
        ),
    };
    let ram = report.question.cluster.host.ram.map(Estimate::exact);
    line(&head, answer.node(), ram, layout)
}

fn host(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, language) = (report.answer, layout.language);
    let ranks = answer.ranks_per_host;
    let mut text = host_line(report, layout);
    let mut rows = named(parts(&answer.on_host(), &[Place::Host, Place::Pinned]), language);
    let each = answer.host().expected().0;
    if !rows.is_empty() {
        let words = |english, chinese| Text::new(english, chinese).get(language);
        rows.push((words("buffers for NVMe", "NVMe 读写缓冲区"), answer.swap));
        rows.push((words("the process itself", "进程本身"), answer.process.expected()));
        rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        text.push_str(&table(&rows, each, each));
    }
    if answer.disk.total().0 > 0 {
        let all = Bytes(answer.disk.total().0 * ranks);
        text.push_str(&tr!(language, "NVMe: {all} per node\n", "NVMe：每节点 {all}\n"));
    }
    text
}

/// "GPU: 37.2 GiB (36.1–38.9) of 41.0 GiB: fits, 3.8 GiB to spare".
pub(super) fn line(
    head: &str,
    need: Estimate,
    capacity: Option<Estimate>,
    layout: &Layout,
) -> String {
    let language = layout.language;
    let colon = Text::new(": ", "：").get(language);
    let Some(capacity) = capacity else { return format!("{head}{colon}{need}\n") };
    let fit = fit(need, capacity);
    let word = paint(fit, layout);
    let difference = |bytes: Bytes| Bytes(capacity.expected().0.abs_diff(bytes.0));
    let (expected, most) = (difference(need.expected()), difference(need.high()));
    let shown = capacity.expected();
    match fit {
        Fit::Fits | Fit::LowHeadroom => tr!(
            language,
            "{head}: {need} of {shown}: {word}, {expected} to spare\n",
            "{head}：{need}，可用 {shown}：{word}，余 {expected}\n"
        ),
        Fit::MayNotFit => tr!(
            language,
            "{head}: {need} of {shown}: {word}, up to {most} too much\n",
            "{head}：{need}，可用 {shown}：{word}，最多超出 {most}\n"
        ),
        Fit::DoesNotFit => tr!(
            language,
            "{head}: {need} of {shown}: {word}, {expected} too much\n",
            "{head}：{need}，可用 {shown}：{word}，超出 {expected}\n"
        ),
    }
}

fn paint(fit: Fit, layout: &Layout) -> String {
    let word = fit.words(layout.language);
    if layout.color { format!("{}{word}\u{1b}[0m", fit.style()) } else { word.to_owned() }
}

fn named(parts: Vec<(Part, Bytes)>, language: Language) -> Vec<(&'static str, Bytes)> {
    parts.into_iter().map(|(part, bytes)| (part.words(language), bytes)).collect()
}

/// Rows of a name, a bar, an amount and its share of `sum`; bars are shares of `whole`. What is less than a
/// two-thousandth of the sum is left out.
fn table(rows: &[(&str, Bytes)], sum: u64, whole: u64) -> String {
    let rows: Vec<_> =
        rows.iter().filter(|(_, bytes)| bytes.0.saturating_mul(2000) >= sum).collect();
    let widest = rows.iter().map(|(name, _)| name.width()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, bytes) in rows {
        let padding = " ".repeat(widest - name.width());
        let share = 100.0 * bytes.0 as f64 / sum.max(1) as f64;
        let amount = bytes.to_string();
        let line =
            format!("  {name}{padding}  {} {amount:>9} {share:>5.0}%", bar(bytes.0, whole, BAR));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// When GPU memory peaks.
pub(super) fn moment(answer: &Answer, language: Language) -> String {
    let phase = phase::moment(answer.fullest).get(language);
    let near = answer.nearest.as_ref();
    let is_loss = near.is_none() && answer.fullest == Phase::Backward;
    match near {
        None if is_loss => tr!(
            language,
            "GPU memory peaks {phase}, at the loss.\n",
            "显存峰值出现在{phase}，刚开始算 loss 的梯度时。\n"
        ),
        Some(name) => tr!(
            language,
            "GPU memory peaks {phase}, near {name}.\n",
            "显存峰值出现在{phase}，位置在 {name} 附近。\n"
        ),
        None => tr!(language, "GPU memory peaks {phase}.\n", "显存峰值出现在{phase}。\n"),
    }
}

fn reliefs(report: &MemoryReport<'_>, language: Language) -> String {
    let of_host = tr!(
        language,
        "Changes that lower host memory per node most:\n",
        "降低每节点主机内存最有效的改动：\n"
    );
    let of_gpu = tr!(language, "Changes that lower GPU memory most:\n", "降低显存最有效的改动：\n");
    let mut text = String::new();
    for (head, reliefs) in [(of_host, report.host_reliefs), (of_gpu, report.reliefs)] {
        if reliefs.is_empty() {
            continue;
        }
        text.push_str(&head);
        for relief in reliefs.iter().take(RELIEFS) {
            let amount = format!("−{}", relief.saved);
            text.push_str(&format!("  {amount:>10}  {}\n", change(relief.lever, language)));
        }
    }
    text
}

pub(super) fn fidelity(answer: &Answer, language: Language) -> Option<String> {
    let Fidelity::StandIn(family) = answer.fidelity else { return None };
    let name = family.name();
    let lent = [Part::Activations, Part::Logits, Part::ActivationGradients, Part::Gathered];
    let rows = parts(answer.at_peak(), &[Place::Device]);
    let lent: Bytes =
        rows.iter().filter(|(part, _)| lent.contains(part)).map(|(_, bytes)| *bytes).sum();
    let error = answer.activation_error.map_or_else(String::new, |error| {
        let (low, high) = (percent(error.low), percent(error.high));
        tr!(
            language,
            " For measured models of this kind, activations computed this way were off by {low} to {high}.",
            "与同类模型的实测相比，这样算出的激活值误差为 {low} 到 {high}。"
        )
    });
    Some(tr!(
        language,
        "note: {lent} of the GPU memory is approximate. zeropilot computes activations, logits and gathered weights from the layers of a plain {name} of the same size. It does not model some details of this model or its adapters yet. Weights, gradients and optimizer states are exact.{error}",
        "提示：显存里有 {lent} 是近似值。激活值、logits 和临时聚合的权重按同样尺寸的普通 {name} 计算。这个模型或它的 LoRA 模块有些细节尚未建模。模型状态（权重、梯度和优化器状态）是精确的。{error}"
    ))
}
