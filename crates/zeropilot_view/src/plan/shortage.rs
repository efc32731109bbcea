//! What is said where nothing fits: which memory is short, and what would do.

use zeropilot_ask::MethodName;
use zeropilot_plan::{Limit, MoreRam, Shortage, Unsplit};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::{PlanReport, way_words};
use crate::escaped;

/// Which memory is short and what would make it fit.
pub(super) fn remedy(report: &PlanReport<'_>, language: Language) -> String {
    let Some(shortage) = &report.plan.shortage else { return String::new() };
    let mut text = format!("\n{}\n", limit_words(shortage, language));
    let remedies = remedies(shortage, language);
    if !remedies.is_empty() {
        text.push_str(
            Text::new("Each of these alone would do:\n", "以下任意一种都可行：\n").get(language),
        );
    }
    for remedy in remedies {
        text.push_str(&format!("  {remedy}\n"));
    }
    if let Some(Unsplit { need, nearest }) = &shortage.unsplit {
        let place = nearest.as_deref().map(escaped);
        let place = place.map_or_else(String::new, |place| {
            tr!(language, "; each is fullest at `{place}`", "，峰值在 `{place}`")
        });
        text.push_str(&tr!(language, "More of such GPUs would not do: ZeRO-3 on any number of them leaves {need} on each{place}\n", "加卡没有用：ZeRO-3 用再多的卡，每张仍要 {need}{place}\n"));
    }
    text.push_str(adapters(report.method, shortage.limit, language));
    text
}

fn limit_words(shortage: &Shortage, language: Language) -> String {
    let Some((MoreRam { way, need, processes }, ram)) = shortage.more_ram.zip(shortage.ram) else {
        return tr!(language, "GPU memory is the limit.", "瓶颈是显存。");
    };
    let way = way_words(way, language);
    match shortage.limit {
        Limit::Host => tr!(
            language,
            "Host memory is the limit, not the GPUs: these have room for {way}, but its {processes} processes per host need {need} of RAM, and there are {ram}.",
            "瓶颈是主机内存，不是显存：“{way}”显存放得下，但每台主机的 {processes} 个进程共需内存 {need}，实际只有 {ram}。"
        ),
        _ => tr!(
            language,
            "GPU memory is the limit without offload, host memory with it: {way} needs {need} of RAM per host, and there are {ram}.",
            "不卸载则显存不够，卸载则主机内存不够：“{way}”每台主机需要内存 {need}，实际只有 {ram}。"
        ),
    }
}

fn remedies(shortage: &Shortage, language: Language) -> Vec<String> {
    let mut remedies = Vec::new();
    if let Some(MoreRam { way, need, .. }) = shortage.more_ram {
        // Rounded up: what is written here can be asked for again.
        let (gib, way) = (need.0.div_ceil(Bytes::GIB.0), way_words(way, language));
        remedies.push(tr!(
            language,
            "{gib} GiB of RAM per host (--host-ram {gib}GiB): {way}",
            "每台主机的内存加到 {gib} GiB（--host-ram {gib}GiB）：{way}"
        ));
    }
    if let Some(way) = shortage.on_disk {
        let way = way_words(way, language);
        remedies.push(tr!(
            language,
            "a local NVMe disk (--nvme-path DIR): {way}",
            "本地 NVMe 盘（--nvme-path 目录）：{way}"
        ));
    }
    if let Some(count) = shortage.gpus {
        remedies.push(tr!(
            language,
            "{count} such GPUs: ZeRO-3, gradient checkpointing",
            "{count} 张同样的卡：ZeRO-3，梯度检查点"
        ));
    }
    if let Some(length) = shortage.shorter {
        remedies.push(tr!(
            language,
            "sequences of {length} tokens (--seq-len {length})",
            "序列缩短到 {length} token（--seq-len {length}）"
        ));
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
            "Adapters need less: --method lora, qlora\n",
            "只训练适配器需要的更少：--method lora、qlora\n",
        ),
        MethodName::Lora => Text::new(
            "A quantized base needs less: --method qlora\n",
            "把基座量化需要的更少：--method qlora\n",
        ),
        MethodName::Qlora => Text::new("", ""),
    }
    .get(language)
}
