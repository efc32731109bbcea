//! The report for people: what fills the GPU and the host, whether it fits, and what would lower it.

use unicode_width::UnicodeWidthStr;
use zeropilot_ask::Compared;
use zeropilot_cluster::{Cluster, Device};
use zeropilot_config::settings::{OffloadDevice, Precision, Zero};
use zeropilot_lint::{Language, Text};
use zeropilot_step::lower::{Fidelity, Method, Recipe};
use zeropilot_step::memory::{Answer, Phase, Question};
use zeropilot_step::zero::Place;
use zeropilot_units::{Bytes, Estimate};

use super::MemoryReport;
use super::bars::bar;
use super::part::{Part, parts};
use super::relief::{change, stage_number};
use super::verdict::{Fit, fit};
use crate::{Layout, escaped};

/// Columns of the bars.
const BAR: usize = 26;
/// Changes that are named.
const RELIEFS: usize = 3;

pub(super) fn report(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let mut text = format!("{}\n", headline(report.name, &report.question, language));
    text.push_str(&format!("  {}\n", batch(&report.question, language)));
    if let Some(note) = assumption(report, language) {
        text.push_str(&format!("  {note}\n"));
    }
    text.push('\n');
    text.push_str(&device(report, layout));
    text.push('\n');
    text.push_str(&host(report, layout));
    text.push('\n');
    text.push_str(&moment(report.answer, language));
    text.push_str(&reliefs(report, language));
    if let Some(note) = fidelity(report.answer, language) {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

/// "Qwen/Qwen3-8B, full fine-tuning, ZeRO-3, bf16, 5 × 44GB".
pub(super) fn headline(name: &str, question: &Question<'_>, language: Language) -> String {
    let separator = Text::new(", ", "，").get(language);
    [
        escaped(name).into_owned(),
        method(question.recipe, language).to_owned(),
        zero(question.zero, language),
        precision(question.resolved.precision()).to_owned(),
        gpus(question.cluster, language),
    ]
    .join(separator)
}

fn method(recipe: &Recipe, language: Language) -> &'static str {
    match recipe.method {
        Method::Full => Text::new("full fine-tuning", "全参数训练"),
        Method::Lora(_) => Text::new("LoRA", "LoRA"),
        Method::QLora { .. } => Text::new("QLoRA", "QLoRA"),
        Method::Only(_) => Text::new("part of the parameters", "只训练部分参数"),
    }
    .get(language)
}

fn zero(zero: &Zero, language: Language) -> String {
    let place = |device: &OffloadDevice| match device {
        OffloadDevice::Cpu => Text::new("host", "内存"),
        OffloadDevice::Nvme(_) => Text::new("NVMe", "NVMe"),
    };
    let mut words = format!("ZeRO-{}", stage_number(zero.stage));
    if let Some(offload) = &zero.offload_optimizer {
        let place = place(&offload.device).get(language);
        words.push_str(&match language {
            Language::English => format!(" + optimizer on {place}"),
            Language::Chinese => format!(" + 优化器卸载到{place}"),
        });
    }
    if let Some(offload) = &zero.offload_param {
        let place = place(&offload.device).get(language);
        words.push_str(&match language {
            Language::English => format!(" + weights on {place}"),
            Language::Chinese => format!(" + 权重卸载到{place}"),
        });
    }
    words
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
    let each = match (cluster.gpus.device, language) {
        (Device::Unknown, Language::English) if count == 1 => "1 GPU".to_owned(),
        (Device::Unknown, Language::English) => format!("{count} GPUs"),
        (Device::Unknown, Language::Chinese) => format!("{count} 张卡"),
        (Device::Memory(stated), _) => format!("{count} × {stated}"),
        (Device::Accelerator(accelerator), _) => format!("{count} × {}", accelerator.name),
    };
    match (nodes, language) {
        (1, _) => each,
        (nodes, Language::English) => format!("{nodes} nodes × {each}"),
        (nodes, Language::Chinese) => format!("{nodes} 个节点 × {each}"),
    }
}

/// That the number format is a guess.
pub(super) fn assumption(report: &MemoryReport<'_>, language: Language) -> Option<String> {
    let format = report.assumed?.name();
    Some(match language {
        Language::English => {
            format!(
                "precision is \"auto\" in the config: {format} is assumed; --precision says otherwise"
            )
        }
        Language::Chinese => {
            format!("配置里的精度是 \"auto\"，这里按 {format} 计算；可用 --precision 指定")
        }
    })
}

pub(super) fn batch(question: &Question<'_>, language: Language) -> String {
    batch_words(question.micro_batch, question.recipe, language)
}

fn batch_words(micro: u64, recipe: &Recipe, language: Language) -> String {
    let length = recipe.sequence;
    let target = recipe.target.map_or(String::new(), |target| match language {
        Language::English => format!(", targets of {target} tokens"),
        Language::Chinese => format!("，目标序列 {target} token"),
    });
    let checkpointing = match (recipe.checkpointing, language) {
        (true, Language::English) => ", with gradient checkpointing",
        (true, Language::Chinese) => "，开启梯度检查点",
        (false, Language::English) => ", without gradient checkpointing",
        (false, Language::Chinese) => "，未开启梯度检查点",
    };
    match language {
        Language::English if micro == 1 => {
            format!("micro batch of 1 sequence of {length} tokens{target}{checkpointing}")
        }
        Language::English => {
            format!("micro batch of {micro} sequences of {length} tokens{target}{checkpointing}")
        }
        Language::Chinese => {
            format!("micro batch：{micro} 条 {length} token 的序列{target}{checkpointing}")
        }
    }
}

/// What stands above a comparison: all that its ways have in common.
pub(super) fn common(name: &str, compared: &Compared, language: Language) -> String {
    let separator = Text::new(", ", "，").get(language);
    let words = [
        escaped(name).into_owned(),
        method(&compared.recipe, language).to_owned(),
        precision(compared.precision).to_owned(),
        gpus(&compared.cluster, language),
    ];
    let batch = batch_words(compared.micro_batch, &compared.recipe, language);
    format!("{}\n  {batch}\n\n", words.join(separator))
}

fn device(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, language) = (report.answer, layout.language);
    let need = answer.device();
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes);
    let mut text = device_line(report, layout);
    let rows = device_rows(answer);
    let whole = capacity.map_or(need.expected(), |capacity| capacity.expected()).0;
    text.push_str(&table(&rows, need.expected().0, whole.max(need.expected().0), language));
    text
}

/// "GPU, rank 0: 37.2 GiB of 41.0 GiB: fits".
pub(super) fn device_line(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let answer = report.answer;
    let capacity = report.question.cluster.capacity().map(|capacity| capacity.bytes);
    let head = match layout.language {
        Language::English => format!("GPU, rank {}", answer.rank),
        Language::Chinese => format!("显存（rank {}）", answer.rank),
    };
    line(&head, answer.device(), capacity, layout)
}

/// What fills a GPU at its fullest.
pub(super) fn device_rows(answer: &Answer) -> Vec<(Part, Bytes)> {
    let mut rows = parts(answer.at_peak(), &[Place::Device]);
    let tensors: Bytes = rows.iter().map(|(_, bytes)| *bytes).sum();
    rows.push((Part::Runtime, answer.device().expected().saturating_sub(tensors)));
    rows
}

/// "Host: 12.0 GiB".
pub(super) fn host_line(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, ranks) = (report.answer, report.answer.ranks_per_host);
    let head = match layout.language {
        Language::English if ranks == 1 => "Host".to_owned(),
        Language::English => format!("Host, {ranks} processes of {}", answer.host().expected()),
        Language::Chinese if ranks == 1 => "内存".to_owned(),
        Language::Chinese => format!("内存（{ranks} 个进程，每个 {}）", answer.host().expected()),
    };
    let ram = report.question.cluster.host.ram.map(Estimate::exact);
    line(&head, answer.node(), ram, layout)
}

fn host(report: &MemoryReport<'_>, layout: &Layout) -> String {
    let (answer, language) = (report.answer, layout.language);
    let ranks = answer.ranks_per_host;
    let mut text = host_line(report, layout);
    let phase = Phase::ALL
        .into_iter()
        .max_by_key(|phase| {
            let peak = answer.on_gpu.peak(*phase);
            peak.at(Place::Host) + peak.at(Place::Pinned)
        })
        .unwrap_or(Phase::Step);
    let rows = parts(&answer.on_gpu.peak(phase).at_device_peak, &[Place::Host, Place::Pinned]);
    let each = answer.host().expected().0;
    if !rows.is_empty() {
        text.push_str(&table(&rows, each, each, language));
    }
    if answer.disk.0 > 0 {
        let all = Bytes(answer.disk.0 * ranks);
        text.push_str(&match language {
            Language::English => format!("NVMe: {all} per node\n"),
            Language::Chinese => format!("NVMe：每节点 {all}\n"),
        });
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
    let difference = Bytes(capacity.expected().0.abs_diff(need.expected().0));
    let shown = capacity.expected();
    match (fit.is_expected(), language) {
        (true, Language::English) => {
            format!("{head}: {need} of {shown}: {word}, {difference} to spare\n")
        }
        (false, Language::English) => {
            format!("{head}: {need} of {shown}: {word}, {difference} too much\n")
        }
        (true, Language::Chinese) => {
            format!("{head}：{need}，可用 {shown}：{word}，余 {difference}\n")
        }
        (false, Language::Chinese) => {
            format!("{head}：{need}，可用 {shown}：{word}，超出 {difference}\n")
        }
    }
}

fn paint(fit: Fit, layout: &Layout) -> String {
    let word = fit.words(layout.language);
    if layout.color { format!("{}{word}\u{1b}[0m", fit.style()) } else { word.to_owned() }
}

/// Rows of a name, a bar, an amount and its share of `sum`; bars are shares of `whole`. What is less than a
/// two-thousandth of the sum is left out.
fn table(rows: &[(Part, Bytes)], sum: u64, whole: u64, language: Language) -> String {
    let rows: Vec<_> =
        rows.iter().filter(|(_, bytes)| bytes.0.saturating_mul(2000) >= sum).collect();
    let widest = rows.iter().map(|(part, _)| part.words(language).width()).max().unwrap_or(0);
    let mut text = String::new();
    for (part, bytes) in rows {
        let name = part.words(language);
        let padding = " ".repeat(widest - name.width());
        let share = 100.0 * bytes.0 as f64 / sum.max(1) as f64;
        let amount = bytes.to_string();
        let line =
            format!("  {name}{padding}  {} {amount:>9} {share:>4.0} %", bar(bytes.0, whole, BAR));
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// When the GPU is fullest.
pub(super) fn moment(answer: &Answer, language: Language) -> String {
    let phase = match answer.fullest {
        Phase::Init => Text::new("while the engine is built", "初始化引擎时"),
        Phase::Forward => Text::new("in the forward pass", "前向传播中"),
        Phase::Backward => Text::new("in the backward pass", "反向传播中"),
        Phase::Step => Text::new("in the optimizer step", "优化器更新时"),
    }
    .get(language);
    let near = answer.nearest.as_ref();
    let is_loss = near.is_none() && answer.fullest == Phase::Backward;
    match (near, language) {
        (None, Language::English) if is_loss => {
            format!("The GPU is fullest {phase}, at the loss.\n")
        }
        (None, Language::Chinese) if is_loss => {
            format!("显存峰值出现在{phase}，刚开始算 loss 的梯度时。\n")
        }
        (Some(name), Language::English) => {
            format!("The GPU is fullest {phase}, near {name}.\n")
        }
        (None, Language::English) => format!("The GPU is fullest {phase}.\n"),
        (Some(name), Language::Chinese) => {
            format!("显存峰值出现在{phase}，位置在 {name} 附近。\n")
        }
        (None, Language::Chinese) => format!("显存峰值出现在{phase}。\n"),
    }
}

fn reliefs(report: &MemoryReport<'_>, language: Language) -> String {
    if report.reliefs.is_empty() {
        return String::new();
    }
    let mut text = match language {
        Language::English => "What would lower it most:\n".to_owned(),
        Language::Chinese => "最有效的几种办法：\n".to_owned(),
    };
    for relief in report.reliefs.iter().take(RELIEFS) {
        let amount = format!("−{}", relief.saved);
        text.push_str(&format!("  {amount:>10}  {}\n", change(relief.lever, language)));
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
    Some(match language {
        Language::English => format!(
            "note: {lent} of the GPU's memory is approximate: activations, logits and gathered weights are counted on the layers of a plain {name} of the same size, since this model or its adapters differ from it in details that are not followed yet. Weights, gradients and optimizer states are exact."
        ),
        Language::Chinese => format!(
            "提示：显存里有 {lent} 是近似值：激活值、logits 和临时聚合的权重是按同样尺寸的普通 {name} 计算的，这个模型（或它的 LoRA 模块）与之有些细节差别，还没有逐一模拟。权重、梯度和优化器状态是精确的。"
        ),
    })
}
