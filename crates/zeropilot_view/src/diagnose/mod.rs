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
    let rows: Vec<(&str, String)> = rows
        .map(|(line, label)| (label.as_str(), escaped(&spaced(&line.text)).into_owned()))
        .collect();
    page.rows(2, &rows);
    section(&mut page, &Text::new("Change first", "首先修改"), language);
    let steps = steps::steps(diagnosis, report.predicted.is_some());
    for (index, step) in steps.iter().enumerate() {
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
        section(&mut page, &Text::new("Missing from the log", "日志里没有的信息"), language);
        for gap in gaps {
            page.row(2, "-", 1, gap);
        }
    }
    page.into_text()
}

/// The text with single spaces.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
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
        "{name} has no out-of-memory message. zeropilot looked for messages of PyTorch's allocators (CUDA, HIP, NPU, XPU, CPU), CUDA, cuBLAS, NCCL and vLLM. It also looked for the kernel's OOM killer and for processes killed with signal 9. Give zeropilot the output of all ranks, including standard error.",
        "{name} 里没有显存或主机内存不足的报错。zeropilot 查找的是：PyTorch 分配器（CUDA、HIP、NPU、XPU、CPU）、CUDA、cuBLAS、NCCL 和 vLLM 的报错，内核 OOM killer 的记录，以及被信号 9 杀死的进程。请提供所有 rank 的完整输出，包括标准错误。"
    )
}

#[cfg(test)]
mod tests {
    use zeropilot_diagnose::{Cause, Certainty, Message, diagnose};

    use super::*;

    fn layout(language: Language) -> Layout {
        Layout { language, ..Layout::default() }
    }

    fn report(diagnosis: &Diagnosis, language: Language) -> String {
        let report = LogReport { name: "x.log", diagnosis: Some(diagnosis), predicted: None };
        human(&report, &layout(language))
    }

    #[test]
    fn every_cause_has_a_reason_and_two_or_three_steps_in_both_languages() {
        let message = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 16.00 GiB total capacity; 9.00 GiB already allocated; 1.00 GiB free; 10.00 GiB reserved in total by PyTorch)";
        let mut one = diagnose(message).expect("a shortage");
        for cause in Cause::ALL {
            one.cause = cause;
            for is_predicted in [false, true] {
                let steps = steps::steps(&one, is_predicted);
                assert!((2..=3).contains(&steps.len()), "{cause:?}");
                let names = steps.iter().any(|step| step.setting == "zeropilot memory");
                assert_eq!(names, cause == Cause::Unknown && !is_predicted, "{cause:?}");
            }
            for (language, marks) in [
                (Language::English, ["Change first", "Evidence"]),
                (Language::Chinese, ["首先修改", "依据"]),
            ] {
                let text = report(&one, language);
                assert!(marks.iter().all(|mark| text.contains(mark)), "{cause:?}: {text}");
                assert!(!text.contains('?') && !text.contains('？'), "{cause:?}: {text}");
            }
        }
    }

    #[test]
    fn how_sure_it_is_stands_in_the_verdict() {
        let text =
            "  File \"x.py\", line 1, in backward\nCUDA out of memory. Tried to allocate 2.00 GiB";
        let mut one = diagnose(text).expect("a shortage");
        assert_eq!(one.certainty, Certainty::Likely);
        assert!(report(&one, Language::English).contains("activations do not fit (likely)"));
        one.certainty = Certainty::Shown;
        assert!(!report(&one, Language::Chinese).contains("可能"));
    }

    #[test]
    fn numbers_are_shown_only_where_the_message_has_them() {
        let mut one = diagnose("RuntimeError: CUDA error: out of memory").expect("a shortage");
        assert!(!report(&one, Language::English).contains("requested "));
        one.message = Message { tried: Some(1 << 30), ..Message::default() };
        assert!(report(&one, Language::English).contains("requested    1.00 GiB\n"));
    }
}
