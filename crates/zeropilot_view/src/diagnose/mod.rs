//! Why a run went out of memory, for people and for programs.

pub(crate) mod json;
mod prediction;
mod steps;
mod words;

use zeropilot_diagnose::{Diagnosis, Memory};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

pub use json::json;

use crate::explain::Page;
use crate::memory::bars::bar;
use crate::{Layout, escaped};

/// Columns of a bar.
const BAR: usize = 24;

/// A diagnosis, with what the memory model predicts for the same job if that was asked.
#[derive(Debug, Clone, Copy)]
pub struct LogReport<'a> {
    /// The log as the user named it.
    pub name: &'a str,
    /// Why memory ran out; `None` if no message says so.
    pub diagnosis: Option<&'a Diagnosis>,
    /// The prediction.
    pub predicted: Option<&'a zeropilot_ask::Memory>,
}

/// The report for people: the verdict, the numbers, the lines it rests on, what to change, what is not known.
pub fn human(report: &LogReport<'_>, layout: &Layout) -> String {
    let language = layout.language;
    let mut page = Page::new(layout);
    let Some(diagnosis) = report.diagnosis else {
        page.paragraph(0, &nothing(report.name, language));
        return page.into_text();
    };
    let verdict = page.bold(&words::verdict(diagnosis, language));
    page.paragraph(0, &verdict);
    page.paragraph(2, &words::reason(diagnosis, language));
    numbers(&mut page, diagnosis, language);
    section(&mut page, &Text::new("Evidence", "依据"), language);
    let label = |number: u64| tr!(language, "line {number}", "第 {number} 行");
    let labels: Vec<String> = diagnosis.evidence.iter().map(|line| label(line.number)).collect();
    let rows = diagnosis.evidence.iter().zip(&labels);
    let rows: Vec<(&str, String)> =
        rows.map(|(line, label)| (label.as_str(), escaped(&line.text).into_owned())).collect();
    page.rows(2, &rows);
    section(&mut page, &Text::new("Change first", "先改什么"), language);
    for (index, step) in steps::steps(diagnosis).iter().enumerate() {
        page.row(2, &format!("{}.", index + 1), 2, step.text.get(language));
    }
    if let Some(predicted) = report.predicted {
        section(&mut page, &Text::new("zeropilot's prediction", "zeropilot 的预测"), language);
        for line in prediction::words(diagnosis, predicted, language) {
            page.paragraph(2, &line);
        }
    }
    let gaps = words::gaps(diagnosis, language);
    if !gaps.is_empty() {
        section(&mut page, &Text::new("What the log does not show", "日志没有说明的"), language);
        for gap in gaps {
            page.row(2, "-", 1, gap);
        }
    }
    page.into_text()
}

fn section(page: &mut Page, title: &Text, language: Language) {
    page.blank();
    page.title(title.get(language));
}

/// The numbers of the message as bars of the GPU's memory.
fn numbers(page: &mut Page, diagnosis: &Diagnosis, language: Language) {
    let message = &diagnosis.message;
    if !message.has_numbers() {
        return;
    }
    page.blank();
    let outside = || message.process()?.checked_sub(message.held()?);
    let others = message.others().filter(|bytes| *bytes > 0);
    let inferred = !message.names_processes();
    let rows = [
        (Text::new("requested", "申请"), message.tried),
        (Text::new("free", "空闲"), message.free),
        (Text::new("live tensors", "在用张量"), message.allocated),
        (Text::new("cached, not in use", "已缓存未使用"), message.cached()),
        (
            Text::new("CUDA context, NCCL", "CUDA 上下文、NCCL"),
            outside().filter(|bytes| *bytes > 0),
        ),
        if inferred {
            (Text::new("outside PyTorch", "PyTorch 之外"), others)
        } else {
            (Text::new("other processes", "其他进程"), others)
        },
        (Text::new("GPU memory", "显存总量"), message.capacity),
    ];
    let whole = message.capacity.filter(|_| diagnosis.memory == Memory::Device);
    let row = |(label, bytes): &(Text, Option<u64>)| {
        let bytes = (*bytes)?;
        let size = format!("{:>10}", Bytes(bytes).to_string());
        let drawn = whole.map(|whole| format!("  {}", bar(bytes, whole, BAR)));
        Some((label.get(language), format!("{size}{}", drawn.unwrap_or_default())))
    };
    let rows: Vec<(&str, String)> = rows.iter().filter_map(row).collect();
    let width = |text: &str| unicode_width::UnicodeWidthStr::width(text);
    let widest = rows.iter().map(|(label, _)| width(label)).max().unwrap_or(0);
    for (label, text) in rows {
        let gap = widest - width(label) + 2;
        page.line(format!("  {}{:gap$}{text}", page.dim(label), "").trim_end());
    }
}

/// That no message says that memory ran out, and what was looked for.
pub fn nothing(name: &str, language: Language) -> String {
    let name = escaped(name);
    tr!(
        language,
        "{name} has no out-of-memory message. zeropilot looked for messages of PyTorch's allocators (CUDA, HIP, NPU, XPU, CPU), CUDA, cuBLAS, NCCL and vLLM, the kernel's OOM killer, and processes killed with signal 9. Give it the output of all ranks, standard error included.",
        "{name} 里没有内存不足的报错。zeropilot 查找的是：PyTorch 分配器（CUDA、HIP、NPU、XPU、CPU）、CUDA、cuBLAS、NCCL 和 vLLM 的报错，内核 OOM killer 的记录，以及被信号 9 杀死的进程。请提供所有 rank 的完整输出，包括标准错误。"
    )
}
