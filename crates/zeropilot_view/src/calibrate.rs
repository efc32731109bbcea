//! What was measured on a machine, for people.

use std::fmt::Write as _;
use std::path::Path;

use zeropilot_ask::calibrate::CalibrateProblem;
use zeropilot_cluster::{DeviceKind, Format, MachineProfile, MeasuredRanks, Pattern, ProfileError};
use zeropilot_text::{Language, tr};
use zeropilot_units::Bytes;

/// The profile in short, and where it is.
pub fn human(profile: &MachineProfile, path: &Path, language: Language) -> String {
    let device = match profile.device.kind {
        DeviceKind::Cpu => tr!(language, "the CPUs of this machine", "本机处理器（CPU）"),
        DeviceKind::Cuda => profile.device.name.clone(),
    };
    let software: Vec<String> =
        profile.software.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let software = software.join(", ");
    let mut text =
        tr!(language, "Measured: {device}, {software}\n", "已实测：{device}，{software}\n");
    for of in &profile.measured {
        text += &ranks(of, language);
    }
    let path = path.display();
    let next = match profile.device.kind {
        DeviceKind::Cpu => tr!(
            language,
            "Written to {path}. `zeropilot simulate --machine {path}` predicts step times from these measurements.\n",
            "已写入 {path}。用 `zeropilot simulate --machine {path}` 按实测值预测每步用时。\n"
        ),
        DeviceKind::Cuda => tr!(
            language,
            "Written to {path}. `memory`, `plan` and `simulate` use this file for these GPUs.\n",
            "已写入 {path}。`memory`、`plan` 和 `simulate` 预测这些 GPU 时会使用这个文件。\n"
        ),
    };
    text + "\n" + &next
}

const MICRO: f64 = 1e6;

/// A rate with its unit; one that costs next to nothing is not known.
fn rate(per_second: f64, unit: &str, language: Language) -> String {
    match per_second {
        free if free > 1e17 => tr!(language, "too fast to measure", "太快，无法测出"),
        tera if tera >= 1e12 => format!("{:.0} T{unit}/s", tera / 1e12),
        giga => format!("{:.0} G{unit}/s", giga / 1e9),
    }
}

fn ranks(of: &MeasuredRanks, language: Language) -> String {
    let count = of.ranks;
    let mut text = tr!(language, "\n{count} ranks at once\n", "\n{count} 个 rank 同时运行\n");
    for (format, rates) in &of.rates {
        let name = match format {
            Format::Bf16 => "bf16",
            Format::Fp16 => "fp16",
            Format::Fp32 => "fp32",
        };
        let products = rate(rates.products_per_s, "FLOP", language);
        let memory = rate(rates.memory_bytes_per_s, "B", language);
        let (kernel, hook) = (rates.kernel_s * MICRO, rates.hook_s * MICRO);
        let (low, high) = (100.0 * (rates.spread.low - 1.0), 100.0 * (rates.spread.high - 1.0));
        let steps = rates.spread.steps;
        text += &tr!(
            language,
            ("  {name}  matrix products {products}, memory bandwidth {memory}, {kernel:.0} µs per kernel, {hook:.0} µs per module in \
              stage 3\n        {steps} training steps, each predicted from the others: measured times differ from predictions by {low:+.0}% to {high:+.0}%\n"),
            ("  {name}  矩阵乘 {products}，访存 {memory}，每个 kernel {kernel:.0} 微秒，stage 3 每个模块 {hook:.0} 微秒\n        \
              {steps} 个训练步，每一步都用其余各步预测：实测与预测相差 {low:+.0}% 到 {high:+.0}%\n")
        );
    }
    for (pattern, curve) in &of.collectives {
        let name = match pattern {
            Pattern::AllGather => "all-gather",
            Pattern::ReduceScatter => "reduce-scatter",
            Pattern::AllReduce => "all-reduce",
            Pattern::Reduce => "reduce",
            Pattern::AllToAll => "all-to-all",
        };
        let (small, large) = (curve.seconds(4 << 10) * MICRO, curve.seconds(64 << 20) * 1e3);
        text += &tr!(
            language,
            "  {name:<15} 4 KiB {small:.0} µs, 64 MiB {large:.1} ms\n",
            "  {name:<15} 4 KiB {small:.0} 微秒，64 MiB {large:.1} 毫秒\n"
        );
    }
    let process = Bytes(of.memory.process_bytes);
    text += &tr!(
        language,
        "  host memory of a process with its libraries: {process}\n",
        "  一个进程及其加载的库占用的主机内存：{process}\n"
    );
    for (bytes, words) in [
        (of.memory.context_bytes, tr!(language, "CUDA context", "CUDA 上下文")),
        (of.memory.communicator_bytes, tr!(language, "communicator", "通信器")),
    ] {
        if let Some(bytes) = bytes.map(Bytes) {
            let _ = writeln!(text, "  {words}: {bytes}");
        }
    }
    text
}

/// Why nothing could be measured.
pub fn problem(problem: &CalibrateProblem, language: Language) -> String {
    match problem {
        CalibrateProblem::Probe(error) => tr!(
            language,
            ("error: the probe could not run: {error}\n  help: run `zeropilot doctor` to see what this machine \
              lacks, and set your training environment with `--python`"),
            ("错误：实测程序无法运行：{error}\n  建议：运行 `zeropilot doctor` 查看本机缺什么，并用 `--python` 指定训练所用的环境")
        ),
        CalibrateProblem::Answer(error) => tr!(
            language,
            ("error: the probe exited without a readable result ({error})\n  help: run the probe by hand: `zeropilot \
              calibrate --show-program > probe.py`"),
            ("错误：实测程序没有给出可读的结果（{error}）\n  建议：手动运行实测程序：`zeropilot calibrate --show-program > probe.py`")
        ),
        CalibrateProblem::TooFew { ran, asked, problem } => tr!(
            language,
            ("error: only {ran} of {asked} probes ran, too few to measure speeds; the first problem: {problem}\n  \
              help: run `zeropilot doctor` to see what this machine lacks"),
            ("错误：{asked} 项实测只有 {ran} 项成功，不足以得出速度；第一个问题：{problem}\n  建议：运行 `zeropilot \
              doctor` 查看本机缺什么")
        ),
    }
}

/// No Python to measure with.
pub fn no_python(language: Language) -> String {
    tr!(
        language,
        "error: zeropilot finds no Python for the measurement\n  help: name your training environment: --python ~/envs/train",
        "错误：找不到用来实测的 Python\n  建议：指定训练所用的环境：--python ~/envs/train"
    )
}

/// The file has no profile that can be used.
pub fn bad_profile(path: &Path, error: &ProfileError, language: Language) -> String {
    let path = path.display();
    tr!(
        language,
        "error: {path} is not a machine profile: {error}\n  help: create a machine profile with `zeropilot calibrate`",
        "错误：{path} 不是机器实测文件：{error}\n  建议：用 `zeropilot calibrate` 生成"
    )
}

/// What is done while nothing is to be seen.
pub fn measuring(ranks: u64, language: Language) -> String {
    tr!(
        language,
        "measuring with {ranks} ranks, which takes a minute or two; do not run anything else meanwhile",
        "正在用 {ranks} 个 rank 实测，需要一两分钟；期间请不要运行其他任务"
    )
}

/// There is no home to write into.
pub fn no_home(language: Language) -> String {
    tr!(
        language,
        "error: HOME is not set, so the profile has no default location\n  help: name a file: --output machine.json",
        "错误：没有设置 HOME，无法确定实测文件的默认位置\n  建议：用 --output machine.json 指定文件"
    )
}
