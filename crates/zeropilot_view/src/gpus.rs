//! Words about the GPUs people describe: what is wrong with a description, and how it was understood.

use unicode_width::UnicodeWidthStr;
use zeropilot_cluster::catalogue::NotFound;
use zeropilot_cluster::discovery::{NoDriver, NotGpus};
use zeropilot_cluster::{Accelerator, Basis, Capacity, Gpus, GpusError, GpusProblem};
use zeropilot_text::{Language, Text, tr};

use crate::escaped;

/// What is wrong with a description of GPUs, where, and what to write instead.
pub fn gpus_error(text: &str, error: &GpusError, language: Language) -> String {
    let meant = text.get(error.span.clone()).unwrap_or(text);
    let (what, help) = problem_words(meant, &error.problem, language);
    let help = help.unwrap_or_else(|| {
        tr!(
            language,
            "write `8`, `44GB`, `5x44GB`, `8xA100-80G` or `4x8xH100` (nodes × GPUs per node)",
            "请写成 `8`、`44GB`、`5x44GB`、`8xA100-80G` 或 `4x8xH100`（节点数 × 每节点卡数）"
        )
    });
    let help_label = Text::new("  help: ", "  建议：").get(language);
    let error_label = Text::new("error: ", "错误：").get(language);
    format!("{error_label}{what}\n{}{help_label}{help}", pointer(text, error))
}

/// The text with its faulty part underlined; nothing if that is all of it.
fn pointer(text: &str, error: &GpusError) -> String {
    let (Some(before), Some(meant)) = (text.get(..error.span.start), text.get(error.span.clone()))
    else {
        return String::new();
    };
    if meant.is_empty() || meant.len() == text.len() {
        return String::new();
    }
    let indent = escaped(before).width();
    let underline = "^".repeat(escaped(meant).width().max(1));
    format!("  {}\n  {}{underline}\n", escaped(text), " ".repeat(indent))
}

/// What is wrong, and what to write instead if that is particular to it.
fn problem_words(
    meant: &str,
    problem: &GpusProblem,
    language: Language,
) -> (String, Option<String>) {
    let meant = escaped(meant);
    match problem {
        GpusProblem::Empty => (tr!(language, "no GPU is given", "没有写明 GPU"), None),
        GpusProblem::Zero => {
            (tr!(language, "there must be at least one GPU", "至少要有一张卡"), None)
        }
        GpusProblem::TooMany { most } => (
            tr!(language, "`{meant}` is more than {most} GPUs", "`{meant}` 超过了 {most} 张卡"),
            None,
        ),
        GpusProblem::TooManyFactors => (
            tr!(
                language,
                "`{meant}` has too many factors: at most nodes × GPUs per node",
                "`{meant}` 里的乘数太多：最多写“节点数 × 每节点卡数”"
            ),
            None,
        ),
        GpusProblem::NothingAfterTimes { count } => (
            tr!(
                language,
                "`{meant}` has the count {count} but no GPU or memory size",
                "`{meant}` 没有写明这 {count} 张卡的型号或显存"
            ),
            Some(tr!(
                language,
                "write `{count}x80GB` or `{count}xH100`, or only `{count}`",
                "写成 `{count}x80GB` 或 `{count}xH100`，或者只写 `{count}`"
            )),
        ),
        GpusProblem::GpusOrGigabytes { left, right } => (
            tr!(
                language,
                "`{meant}` can mean {right} GPUs per node or {right} GB of GPU memory",
                "`{meant}` 既可能是每节点 {right} 张卡，也可能是 {right} GB 显存"
            ),
            Some(tr!(
                language,
                "write `{left}x{right}GB` for {left} GPUs with {right} GB each; for {left} nodes of {right} GPUs, also name the GPU model: `{left}x{right}xH100`",
                "{left} 张 {right} GB 的卡写成 `{left}x{right}GB`；{left} 个节点、每节点 {right} 张则要写明型号：`{left}x{right}xH100`"
            )),
        ),
        GpusProblem::NotMemory => (
            tr!(
                language,
                "`{meant}` is neither a memory size nor a known GPU",
                "`{meant}` 既不是显存大小，也不是已知的型号"
            ),
            None,
        ),
        GpusProblem::ImplausibleMemory => (
            tr!(language, "no GPU has {meant} of memory", "没有哪张 GPU 的显存是 {meant}"),
            Some(tr!(
                language,
                "write the memory size of one GPU: `80GB`, or `46068MiB` as nvidia-smi prints it",
                "请写单卡显存：`80GB`，或照抄 nvidia-smi 显示的 `46068MiB`"
            )),
        ),
        GpusProblem::Mixed { smallest } => (
            tr!(
                language,
                "`{meant}` mixes different GPUs, but every rank gets an equal share of the model states",
                "`{meant}` 混用了不同的 GPU，而每个 rank 分到的模型状态一样多"
            ),
            Some(tr!(
                language,
                "name the GPU with the least memory: `{smallest}`",
                "改为按显存最小的卡计算：`{smallest}`"
            )),
        ),
        GpusProblem::Accelerator(problem) => accelerator_words(&meant, problem, language),
        GpusProblem::Uneven { count, usual } => (
            tr!(
                language,
                "{count} GPUs cannot be divided evenly among nodes of up to {usual} GPUs, whose ranks share host memory",
                "{count} 张卡无法平均分到每节点最多 {usual} 张的节点上，而同一节点的 rank 共用主机内存"
            ),
            Some(tr!(
                language,
                "also set the number of nodes, as in `1x{count}xH100`",
                "请写明节点数，例如 `1x{count}xH100`"
            )),
        ),
    }
}

fn accelerator_words(
    meant: &str,
    problem: &NotFound,
    language: Language,
) -> (String, Option<String>) {
    match problem {
        NotFound::Unknown { nearest } => {
            let names = listed(nearest, language);
            let help = if nearest.is_empty() {
                tr!(
                    language,
                    "write the memory size of the GPU instead, as in `8x80GB`",
                    "可以直接写显存，例如 `8x80GB`"
                )
            } else {
                tr!(
                    language,
                    "did you mean {names}? Otherwise, write the memory size of the GPU, as in `8x80GB`",
                    "是不是想写 {names}？不是的话可以直接写显存，例如 `8x80GB`"
                )
            };
            let what =
                tr!(language, "`{meant}` is not a known accelerator", "`{meant}` 不是已知的加速卡");
            (what, Some(help))
        }
        NotFound::Ambiguous { choices } => (
            tr!(
                language,
                "`{meant}` matches {} GPU models with different memory sizes or interconnects",
                "`{meant}` 对应 {} 种 GPU，显存或互联不同",
                choices.len()
            ),
            Some(tr!(language, "write one of {}", "请写明是哪一种：{}", listed(choices, language))),
        ),
    }
}

fn listed(accelerators: &[&Accelerator], language: Language) -> String {
    let slugs = accelerators.iter().map(|accelerator| format!("`{}`", accelerator.slug()));
    slugs.collect::<Vec<_>>().join(Text::new(", ", "、").get(language))
}

/// How the memory of a GPU was understood, where that is more than a printed fact.
pub fn capacity_note(gpus: &Gpus, capacity: &Capacity, language: Language) -> Option<String> {
    let bytes = capacity.bytes;
    let shown = bytes.expected();
    let binary = gpus.stated_memory().map(|stated| stated.to_string().replace("GB", "GiB"));
    let name = gpus.device.accelerator().map(|accelerator| accelerator.name.as_str());
    Some(match capacity.basis {
        Basis::Published | Basis::StatedBinary => return None,
        Basis::StatedDecimal => tr!(
            language,
            "note: GB is read as 10^9 bytes, {shown} per GPU, to be conservative; write `{}` or name the GPU if it has more",
            "提示：GB 按 10^9 字节计，即每卡 {shown}，这是保守的算法；实际更多时请写 `{}` 或写明型号",
            binary?
        ),
        Basis::DriverTotal | Basis::Nominal => tr!(
            language,
            "note: the memory that PyTorch can use on a {} is not published; {bytes} is estimated from similar GPUs",
            "提示：没有公开资料说明 PyTorch 在 {} 上能用多少显存，按同类 GPU 估计为 {bytes}",
            name?
        ),
    })
}

/// How GPUs were spread over nodes, where nobody said it.
pub fn layout_note(gpus: &Gpus, language: Language) -> Option<String> {
    let layout = gpus.layout;
    if layout.stated || layout.nodes == 1 {
        return None;
    }
    let (nodes, each) = (layout.nodes, layout.gpus_per_node);
    Some(tr!(
        language,
        "note: assuming {nodes} nodes of {each} GPUs",
        "提示：假定为 {nodes} 个节点、每节点 {each} 张卡"
    ))
}

/// That the GPUs of this machine cannot be listed.
pub fn no_driver(problem: &NoDriver, language: Language) -> String {
    let reason = match problem {
        NoDriver::NoLibrary => {
            tr!(language, "no NVIDIA driver is installed", "没有安装 NVIDIA 驱动")
        }
        NoDriver::Refuses(reason) => escaped(reason).into_owned(),
    };
    tr!(
        language,
        "error: --gpus is not given, and the GPUs of this machine cannot be listed: {reason}\n  help: name the GPUs of the run, such as --gpus 8xA100-80G or --gpus 5x44GB",
        "错误：没有给出 --gpus，又无法列出本机的 GPU：{reason}\n  建议：请写明要用的 GPU，例如 --gpus 8xA100-80G 或 --gpus 5x44GB"
    )
}

/// That the GPUs of this machine are no cluster to plan for.
pub fn not_gpus(problem: &NotGpus, language: Language) -> String {
    match problem {
        NotGpus::None => tr!(
            language,
            "error: --gpus is not given, and zeropilot finds no GPU on this machine\n  help: check CUDA_VISIBLE_DEVICES, or name the GPUs of the run: --gpus 8xA100-80G",
            "错误：没有给出 --gpus，本机也没有可见的 GPU\n  建议：检查 CUDA_VISIBLE_DEVICES，或写明要用的 GPU：--gpus 8xA100-80G"
        ),
        NotGpus::Different(names) => tr!(
            language,
            "error: --gpus is not given, and the GPUs of this machine are of different types: {}\n  help: select GPUs of one type with CUDA_VISIBLE_DEVICES, or set --gpus; every rank gets an equal share of the model states",
            "错误：没有给出 --gpus，而本机的 GPU 型号不一致：{}\n  建议：用 CUDA_VISIBLE_DEVICES 选出同型号的卡，或写明 --gpus；每个 rank 分到的模型状态一样多",
            escaped(&names.join(", "))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str, language: Language) -> String {
        gpus_error(text, &text.parse::<Gpus>().unwrap_err(), language)
    }

    #[test]
    fn an_ambiguous_card_is_underlined_and_its_choices_can_be_typed() {
        let said = error("8xA100", Language::English);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines[0],
            "error: `A100` matches 4 GPU models with different memory sizes or interconnects"
        );
        assert_eq!(lines[1..3], ["  8xA100", "    ^^^^"]);
        for choice in lines[3].split('`').skip(1).step_by(2) {
            assert!(format!("8x{choice}").parse::<Gpus>().is_ok(), "{choice}");
        }
        assert!(error("8xA100", Language::Chinese).contains("`A100` 对应 4 种 GPU"));
    }

    #[test]
    fn every_problem_is_said_in_both_languages_with_what_to_do() {
        let texts = [
            "",
            "0",
            "99999999x8xT4",
            "2x4x8xH100",
            "8x",
            "8x80",
            "5x44QB",
            "5x1MB",
            "MI300",
            "zzzzzz",
            "11xT4",
            "4xA100-40G+4xA100-80G",
        ];
        for text in texts {
            assert!(error(text, Language::English).contains("help: "), "{text}");
            let chinese = error(text, Language::Chinese);
            assert!(chinese.contains("建议：") && !chinese.contains("help"), "{text}");
        }
    }

    #[test]
    fn a_plain_number_of_gigabytes_says_how_it_was_read() {
        let gpus: Gpus = "5x44GB".parse().unwrap();
        let capacity = Capacity::of(gpus.device).unwrap();
        let note = capacity_note(&gpus, &capacity, Language::English).unwrap();
        assert!(note.contains("41.0 GiB per GPU") && note.contains("`44GiB`"), "{note}");
        let exact: Gpus = "5x44GiB".parse().unwrap();
        let capacity = Capacity::of(exact.device).unwrap();
        assert_eq!(capacity_note(&exact, &capacity, Language::Chinese), None);
    }
}
