//! What is said where nothing fits: which memory is short, and what would do.

use serde::Serialize;
use zeropilot_ask::MethodName;
use zeropilot_plan::{Held, Limit, MoreGpus, MoreRam, Shortage, Unsplit};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::{PlanReport, way_words};
use crate::escaped;

/// A change that would make something fit: in words, and where an option makes it, that option with its value.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(super) struct Remedy {
    words: String,
    option: Option<&'static str>,
    value: Option<String>,
}

impl Remedy {
    fn new(words: String, option: &'static str, value: impl ToString) -> Self {
        Self { words, option: Some(option), value: Some(value.to_string()) }
    }

    /// One that more than an option brings about.
    fn without_option(words: String) -> Self {
        Self { words, option: None, value: None }
    }
}

/// Which memory is short and what would make it fit.
pub(super) fn remedy(report: &PlanReport<'_>, language: Language) -> String {
    let Some(shortage) = &report.plan.shortage else { return String::new() };
    let mut text = format!("\n{}\n", limit_words(shortage, language));
    let remedies = remedies(shortage, language);
    if !remedies.is_empty() {
        text.push_str(
            Text::new("Any one of these is enough:\n", "以下任意一种都可行：\n").get(language),
        );
    }
    for remedy in remedies {
        text.push_str(&format!("  {}\n", remedy.words));
    }
    text.push_str(&useless(shortage, language));
    text.push_str(adapters(report.method, shortage.limit, language));
    text
}

/// Why more GPUs would not do; empty if they would.
pub(super) fn useless(shortage: &Shortage, language: Language) -> String {
    let mut text = String::new();
    if let Some(Unsplit { stage, need, nearest }) = &shortage.unsplit {
        let stage = stage.number();
        let place = nearest.as_deref().map(escaped);
        let place = place.map_or_else(String::new, |place| {
            tr!(language, "; the peak is at `{place}`", "，峰值在 `{place}`")
        });
        text.push_str(&tr!(language, "More GPUs of this kind would not help: with any number of them, ZeRO-{stage} still needs {need} on each GPU{place}\n", "增加卡数没有用：无论用多少张卡，ZeRO-{stage} 每张卡仍需要 {need}{place}\n"));
    }
    text
}

/// Methods that train less, where the GPUs are short.
pub(super) fn methods(method: MethodName, shortage: &Shortage, language: Language) -> Vec<Remedy> {
    let methods: &[(&str, Text)] = match (shortage.limit, method) {
        (Limit::Host, _) | (_, MethodName::Qlora) => &[],
        (_, MethodName::Lora) => &[("qlora", Text::new("QLoRA", "QLoRA"))],
        (_, MethodName::Full) => {
            &[("lora", Text::new("LoRA", "LoRA")), ("qlora", Text::new("QLoRA", "QLoRA"))]
        }
    };
    let remedy = |(value, text): &(&str, Text)| {
        Remedy::new(text.get(language).to_owned(), "--method", value)
    };
    methods.iter().map(remedy).collect()
}

pub(super) fn limit_words(shortage: &Shortage, language: Language) -> String {
    let Some((MoreRam { way, need, processes }, ram)) = shortage.more_ram.zip(shortage.ram) else {
        return tr!(language, "GPU memory is the limit.", "瓶颈是显存。");
    };
    let way = way_words(way, language);
    match shortage.limit {
        Limit::Host => tr!(
            language,
            "Host memory is the limit, not GPU memory. {way} fits on the GPUs, but its {processes} processes per node need {need} of host memory, and each node has {ram}.",
            "瓶颈是主机内存，不是显存：“{way}”显存放得下，但每台主机的 {processes} 个 rank 共需 {need}，实际只有 {ram}。"
        ),
        _ => tr!(
            language,
            "Without offload, GPU memory is the limit; with offload, host memory is. {way} needs {need} of host memory per node, and each node has {ram}.",
            "不卸载则显存不够，卸载则主机内存不够：“{way}”每台主机需要 {need} 主机内存，实际只有 {ram}。"
        ),
    }
}

pub(super) fn remedies(shortage: &Shortage, language: Language) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some(MoreRam { way, need, .. }) = shortage.more_ram {
        // Rounded up: what is written here can be asked for again.
        let (gib, way) = (need.0.div_ceil(Bytes::GIB.0), way_words(way, language));
        let words = tr!(
            language,
            "{gib} GiB of host memory per node (--host-ram {gib}GiB): {way}",
            "每台机器的主机内存加到 {gib} GiB（--host-ram {gib}GiB）：{way}"
        );
        remedies.push(Remedy::new(words, "--host-ram", format!("{gib}GiB")));
    }
    if let Some(way) = shortage.on_disk {
        let way = way_words(way, language);
        let words = tr!(
            language,
            "a local NVMe disk (--nvme-path DIR): {way}",
            "本地 NVMe 盘（--nvme-path 目录）：{way}"
        );
        remedies.push(Remedy::without_option(words));
    }
    if let Some(way) = shortage.fused {
        let way = way_words(way, language);
        let words = tr!(
            language,
            "a fused loss, which never holds all logits (--fused-loss; Liger kernel or cut cross-entropy in the trainer): {way}",
            "融合 loss，不必存下全部 logits（--fused-loss；在训练框架里启用 Liger kernel 或 cut cross-entropy）：{way}"
        );
        remedies.push(Remedy::without_option(words));
    }
    if let Some((held, way)) = shortage.released {
        let (options, way) = (held_options(held).join(", "), way_words(way, language));
        let words = tr!(
            language,
            "the strategy that zeropilot chooses without {options}: {way}",
            "不指定 {options}，由 zeropilot 选择：{way}"
        );
        remedies.push(Remedy::without_option(words));
    }
    if let Some(MoreGpus { count, way }) = shortage.gpus {
        let way = way_words(way, language);
        let words = tr!(language, "{count} GPUs of this kind: {way}", "{count} 张同样的卡：{way}");
        remedies.push(Remedy::new(words, "--gpus", count));
    }
    if let Some(length) = shortage.shorter {
        let words = tr!(
            language,
            "sequences of {length} tokens (--seq-len {length})",
            "序列缩短到 {length} token（--seq-len {length}）"
        );
        remedies.push(Remedy::new(words, "--seq-len", length));
    }
    remedies
}

/// Training less needs less of the GPUs; the model itself is loaded all the same.
fn adapters(method: MethodName, limit: Limit, language: Language) -> &'static str {
    if limit == Limit::Host {
        return "";
    }
    match method {
        MethodName::Full => Text::new(
            "Adapters need less GPU memory: --method lora or --method qlora\n",
            "只训练适配器需要的显存更少：--method lora 或 --method qlora\n",
        ),
        MethodName::Lora => Text::new(
            "A quantized base model needs less GPU memory: --method qlora\n",
            "量化基座模型后需要的显存更少：--method qlora\n",
        ),
        MethodName::Qlora => Text::new("", ""),
    }
    .get(language)
}

/// The options that hold a part of the strategy.
pub(super) fn held_options(held: Held) -> Vec<&'static str> {
    let options = [
        (held.stage.is_some(), "--stage"),
        (held.offloaded.is_some(), "--offload"),
        (held.micro_batch.is_some(), "--micro-batch"),
        (held.checkpointing.is_some(), "--grad-checkpointing"),
    ];
    options.into_iter().filter(|(is_held, _)| *is_held).map(|(_, option)| option).collect()
}
