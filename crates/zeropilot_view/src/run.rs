//! Supervised runs in words: what happens, why they ended, what to do.

mod checkpoints;
mod drift;
mod ending;
mod evidence;
mod hang;
mod listing;
pub mod nodes;
pub mod report;
mod shortage;
mod status;
pub mod watch;

use std::path::Path;

use zeropilot_record::{
    Attempt, Cause, Evidence, Memory, Phase, RunEvent, RunInfo, Setup, Shortage, Verdict,
};
use zeropilot_text::{Language, Text, tr};

use crate::{escaped, strategy_words, system};

pub use ending::{Ended, loss_words, verdict};
pub use listing::{Row, list, list_json};
pub use status::{StatusLine, status};

/// Fingerprints that launchers wait behind for minutes, so that they are said at once.
const MEETING: [&str; 2] = ["address_in_use", "host_unknown"];

/// What a person is told while a run goes on; nothing for most happenings.
pub fn happening(happening: &RunEvent, language: Language) -> Option<String> {
    let text = match happening {
        RunEvent::FallbackTaken { strategy, config } => tr!(
            language,
            "next fallback: {}\n  config: {}",
            "下一个降级方案：{}\n  配置：{}",
            setup_words(strategy, language),
            escaped(config)
        ),
        RunEvent::Room { memory, least, expected, left } => {
            return shortage::room(*memory, [*least, *expected, *left], language);
        }
        RunEvent::MemoryCompared { rank, phase, measured, predicted, terms, larger } => {
            shortage::compared(
                &shortage::Compared {
                    rank: *rank,
                    phase: *phase,
                    measured: *measured,
                    predicted: *predicted,
                    terms,
                    larger: larger.as_deref(),
                },
                language,
            )
        }
        RunEvent::Restarting { delay } => {
            tr!(language, "starting again in {delay:.0} s", "{delay:.0} 秒后重新启动")
        }
        RunEvent::Fingerprint { id, line, .. } if MEETING.contains(&id.as_str()) => tr!(
            language,
            "{}: {}\n  help: {}",
            "{}：{}\n  建议：{}",
            cause_words(&Cause::NoRendezvous, language),
            escaped(line),
            advice(&Cause::NoRendezvous, language).unwrap_or_default()
        ),
        RunEvent::NormNotFinite { since } => tr!(
            language,
            "since step {since}, the gradient norm has been NaN or infinite, but the loss is finite. In fp16, DeepSpeed skips such steps; in bf16 or fp32, they do not train the model\n  help: lower the learning rate, or check the data and the loss of these steps",
            "从第 {since} 步起，梯度范数是 NaN 或无穷大，但 loss 是有限值。fp16 下 DeepSpeed 会跳过这些步；bf16 或 fp32 下这些步没有训练效果\n  建议：降低学习率，或检查这些步的数据和 loss"
        ),
        RunEvent::NoRanksYet { seconds } => tr!(
            language,
            "no rank has started after {seconds:.0} s, and the launcher is idle: it is probably waiting for other nodes\n  help: check that the command runs on every node, with the same master address, port and number of nodes. Press Ctrl-C to stop the run",
            "{seconds:.0} 秒后仍没有 rank 启动，启动器也处于空闲：它很可能在等其他节点\n  建议：确认每个节点都在运行该命令，且主节点地址、端口和节点数相同；按 Ctrl-C 停止运行"
        ),
        RunEvent::NotFinite { since: Some(step) } => tr!(
            language,
            "since step {step}, the loss or the gradient norm has been NaN or infinite",
            "从第 {step} 步起，loss 或梯度范数是 NaN 或无穷大"
        ),
        RunEvent::NotFinite { since: None } => tr!(
            language,
            "the loss or the gradient norm is NaN or infinite",
            "loss 或梯度范数是 NaN 或无穷大"
        ),
        RunEvent::Hang { seconds, ranks, stood, explanation } => {
            hang::happened(*seconds, ranks, stood, explanation.as_ref(), language)
        }
        RunEvent::SignalPassed { signal, processes: 0 } => tr!(
            language,
            "zeropilot did not forward signal {signal}: no process of the run handles it",
            "没有转发信号 {signal}：运行中的进程都不处理它"
        ),
        RunEvent::SignalPassed { signal, processes } => tr!(
            language,
            "forwarded signal {signal} to {processes} process(es)",
            "信号 {signal} 已转发给 {processes} 个进程"
        ),
        RunEvent::Stopping { signal } => tr!(
            language,
            "stopping all processes (signal {signal})",
            "正在停止所有进程（信号 {signal}）"
        ),
        RunEvent::AttemptEnded { cause: Cause::Completed, .. } => return None,
        RunEvent::AttemptEnded { attempt, cause, .. } => tr!(
            language,
            "attempt {attempt} ended: {}",
            "第 {attempt} 次尝试结束：{}",
            cause_words(cause, language)
        ),
        _ => {
            return checkpoints::happened(happening, language)
                .or_else(|| drift::happened(happening, language));
        }
    };
    Some(text)
}

/// What an attempt runs with.
fn setup_words(setup: &Setup, language: Language) -> String {
    match setup {
        Setup::Strategy(strategy) => strategy_words(strategy, language),
        Setup::Text(text) if !text.is_empty() => escaped(text).into_owned(),
        Setup::AsGiven | Setup::Text(_) => tr!(language, "config as given", "原配置"),
    }
}

fn of_ranks(ranks: &[u32], language: Language) -> String {
    let list = ranks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match ranks {
        [] => String::new(),
        [_] => tr!(
            language,
            "; rank {list} differs from the others",
            "；与其他 rank 不同的是 rank {list}"
        ),
        _ => tr!(
            language,
            "; ranks {list} differ from the others",
            "；与其他 rank 不同的是 rank {list}"
        ),
    }
}

/// Why a run ended.
pub fn cause_words(cause: &Cause, language: Language) -> String {
    let fixed = |en: &'static str, zh: &'static str| Text::new(en, zh).get(language).to_owned();
    match cause {
        Cause::Completed => fixed("completed", "已完成"),
        Cause::OutOfMemory { memory, shortage, phase } => {
            memory_words(*memory, *shortage, *phase, language)
        }
        Cause::RankKilled { rank, signal } => killed_words(*rank, *signal, language),
        Cause::Crashed { rank, signal } => crashed_words(*rank, *signal, language),
        Cause::DeviceFailed { rank: Some(rank) } => {
            tr!(language, "a GPU failed on rank {rank}", "GPU 硬件故障（rank {rank}）")
        }
        Cause::DeviceFailed { rank: None } => fixed("a GPU failed", "GPU 硬件故障"),
        Cause::SharedMemoryFull => {
            fixed("shared memory is full: /dev/shm is too small", "共享内存已满：/dev/shm 太小")
        }
        Cause::DriverTooOld => fixed(
            "the NVIDIA driver is too old for this PyTorch",
            "NVIDIA 驱动太旧，不支持当前的 PyTorch",
        ),
        Cause::CudaError { rank: Some(rank) } => {
            tr!(language, "CUDA failed on rank {rank}", "rank {rank} 上发生 CUDA 错误")
        }
        Cause::CudaError { rank: None } => fixed("CUDA failed", "发生 CUDA 错误"),
        Cause::HubUnavailable => {
            fixed("the model hub rejected requests or failed", "模型仓库（Hub）拒绝请求或发生故障")
        }
        Cause::NoRendezvous => {
            fixed("the ranks could not connect to each other", "各 rank 无法建立连接")
        }
        Cause::LauncherKilled { signal: Some(signal) } => {
            tr!(language, "the command was killed (signal {signal})", "命令被杀死（信号 {signal}）")
        }
        Cause::LauncherKilled { signal: None } => {
            fixed("the launcher's process on this node was killed", "本节点的启动器进程被杀死")
        }
        Cause::ProgramFailed { rank: Some(rank) } => tr!(
            language,
            "the training program failed, first on rank {rank}",
            "训练程序出错，最先失败的是 rank {rank}"
        ),
        Cause::ProgramFailed { rank: None } => fixed("the training program failed", "训练程序出错"),
        Cause::CollectiveTimeout => fixed(
            "a collective timed out: ranks waited too long for each other",
            "集合通信超时：各 rank 互相等待太久",
        ),
        Cause::PeerLost => fixed(
            "the connection to a rank on another machine was lost",
            "与另一台机器上的 rank 断开了连接",
        ),
        Cause::Hang { ranks } => fixed("the run hung", "训练卡住") + &of_ranks(ranks, language),
        Cause::LossScaleFloor => fixed(
            "fp16 diverged: the loss scale is already at its minimum",
            "fp16 发散：loss scale 已降到最小",
        ),
        Cause::LossSpike { since } => tr!(
            language,
            "the loss jumped at step {since} and stayed high",
            "loss 在第 {since} 步突然升高，此后没有回落"
        ),
        Cause::NotFinite => fixed(
            "the loss or the gradient norm is NaN or infinite",
            "loss 或梯度范数变成了 NaN 或无穷大",
        ),
        Cause::EndedEarly { step, total } => tr!(
            language,
            "ended at step {step} of {total}: the command exited without an error before the last step",
            "在第 {step}/{total} 步结束：命令没有报错，但没有完成全部步数"
        ),
        Cause::NoInput => fixed(
            "the training program asked for input, but its standard input is /dev/null",
            "训练程序要求输入，但它的标准输入是 /dev/null",
        ),
        Cause::ConfigRejected => fixed("DeepSpeed rejected the config", "DeepSpeed 不接受该配置"),
        Cause::DiskFull => fixed("a disk is full", "磁盘已满"),
        Cause::CheckpointUnreadable => {
            fixed("a checkpoint could not be read", "checkpoint 无法读取")
        }
        Cause::Interrupted { signal } => {
            tr!(language, "interrupted (signal {signal})", "被中断（信号 {signal}）")
        }
        Cause::Unproven => fixed(
            "the launcher reported success, but nothing shows that training finished",
            "启动器返回成功，但没有任何迹象表明训练已经完成",
        ),
        Cause::NotStarted => fixed("the command could not be started", "命令无法启动"),
        Cause::Refused => fixed("the preflight check failed", "启动前检查未通过"),
    }
}

fn killed_words(rank: Option<u32>, signal: i32, language: Language) -> String {
    match rank {
        Some(rank) => tr!(
            language,
            "rank {rank} was killed (signal {signal})",
            "rank {rank} 被杀死（信号 {signal}）"
        ),
        None => tr!(
            language,
            "a rank was killed (signal {signal})",
            "有一个 rank 被杀死（信号 {signal}）"
        ),
    }
}

fn crashed_words(rank: Option<u32>, signal: i32, language: Language) -> String {
    match rank {
        Some(rank) => tr!(
            language,
            "rank {rank} crashed (signal {signal})",
            "rank {rank} 崩溃（信号 {signal}）"
        ),
        None => {
            tr!(language, "a process crashed (signal {signal})", "有一个进程崩溃（信号 {signal}）")
        }
    }
}

fn memory_words(
    memory: Memory,
    shortage: Shortage,
    phase: Option<Phase>,
    language: Language,
) -> String {
    let what = match (memory, shortage) {
        (Memory::Device, _) => Text::new("out of GPU memory", "显存不足"),
        (Memory::Host, Shortage::Refused) => Text::new("out of host memory", "主机内存不足"),
        (Memory::Host, Shortage::Killed) => Text::new(
            "out of host memory: the kernel killed a process",
            "主机内存不足：内核杀死了进程",
        ),
    };
    let when = phase.map(|phase| match phase {
        Phase::Loading => Text::new(" while loading", "（加载时）"),
        Phase::Forward => Text::new(" in the forward pass", "（前向时）"),
        Phase::Backward => Text::new(" in the backward pass", "（反向时）"),
        Phase::Step => Text::new(" in the optimizer step", "（参数更新时）"),
        Phase::Saving => Text::new(" while saving", "（保存时）"),
    });
    format!("{}{}", what.get(language), when.map_or("", |when| when.get(language)))
}

/// What cannot be done for a command in which not exactly one training run was seen.
pub fn launches(seen: usize, language: Language) -> String {
    match seen {
        0 => tr!(
            language,
            "no DeepSpeed launch found in this command: zeropilot does not check the config, predict memory or try fallbacks, but it still supervises the run",
            "在这条命令里没有找到启动 DeepSpeed 的部分：zeropilot 不检查配置、不预测显存，也不降级，但仍会监督运行"
        ),
        seen => tr!(
            language,
            "this script launches {seen} training runs, so zeropilot predicts no memory and tries no fallbacks. To get both, supervise the runs one by one",
            "这个脚本里有 {seen} 处启动训练，因此 zeropilot 不预测显存，也不降级；需要这两项时，请逐个监督运行"
        ),
    }
}

/// That errors were found that do not keep the run from its start.
pub fn starts_anyway(language: Language) -> String {
    tr!(
        language,
        "the run starts: these errors depend on how the training script uses the config, and zeropilot reads the script without running it",
        "运行照常启动：这些错误取决于训练脚本怎样使用配置，而 zeropilot 只读取脚本，不执行"
    )
}

/// That the record cannot be written any more.
pub fn unrecorded(directory: &Path, error: &std::io::Error, language: Language) -> String {
    let (directory, error) = (directory.display().to_string(), system::failure(error, language));
    let directory = escaped(&directory);
    tr!(
        language,
        "warning: the record in {directory} is incomplete: {error}\n  help: training is not affected; free some disk space there, or use --record DIR next time",
        "警告：{directory} 里的运行记录不完整：{error}\n  建议：训练不受影响；请腾出磁盘空间，或下次用 --record 目录 换一个位置"
    )
}

/// That the copy of the events is not written any more.
pub fn events_lost(error: &std::io::Error, language: Language) -> String {
    let error = system::failure(error, language);
    tr!(
        language,
        "warning: cannot write more events to the file or pipe of --events: {error}\n  help: the run continues; events.jsonl in the record contains all events",
        "警告：无法继续向 --events 指定的文件或管道写事件：{error}\n  建议：训练照常进行；完整的事件在记录里的 events.jsonl 中"
    )
}

/// That a message could not be sent.
pub fn unsent(why: &str, language: Language) -> String {
    let why = system::told(why, language);
    let why = escaped(&why);
    tr!(
        language,
        "warning: zeropilot could not send a notification: {why}\n  help: the run continues; check the URL or command of --notify",
        "警告：zeropilot 无法发送通知：{why}\n  建议：训练照常进行；请检查 --notify 的 URL 或命令"
    )
}

/// That there is nothing to continue.
pub fn already_completed(id: &str, language: Language) -> String {
    let id = escaped(id);
    tr!(
        language,
        "zeropilot: run {id} is already completed; there is nothing to continue",
        "zeropilot：运行 {id} 已经完成，无需继续"
    )
}

/// That nobody said how a program resumes.
pub fn no_way_to_continue(language: Language) -> String {
    tr!(
        language,
        "error: --continue needs --resume-with, which sets how the training program resumes from a checkpoint\n  help: add --resume-with, for example --resume-with '--resume {{}}'",
        "错误：--continue 需要 --resume-with，用来指定训练程序如何从 checkpoint 续训\n  建议：加上 --resume-with，例如 --resume-with '--resume {{}}'"
    )
}

/// Why memory ran out, from the lines in a file.
pub fn why_memory_ran_out(path: &str, why: &str, language: Language) -> String {
    let path = escaped(path);
    tr!(
        language,
        "cause of the memory shortage, from the last log lines in {path}:\n{why}",
        "显存或主机内存不足的原因（根据 {path} 中的最后输出）：\n{why}"
    )
}

/// That there is no such training program.
pub fn no_program(program: &Path, language: Language) -> String {
    let program = program.display().to_string();
    let program = escaped(&program);
    tr!(
        language,
        "error: the training program {program} does not exist in this directory\n  help: write its path relative to this directory, or change to the directory that contains it",
        "错误：当前目录下没有训练程序 {program}\n  建议：写相对当前目录的路径，或先切换到它所在的目录"
    )
}

/// What to do after a run, where something can be said: what it was started with, and what its record has.
pub(crate) fn advice_after(
    info: &RunInfo,
    verdict: &Verdict,
    language: Language,
) -> Option<String> {
    let last = verdict.attempts.last();
    let number = last.map_or(1, |last| last.number);
    let has_stacks = last.is_some_and(|last| {
        last.evidence.iter().any(|evidence| matches!(evidence, Evidence::RanksAt(_)))
    });
    let general = advice(&verdict.cause, language)?;
    Some(match &verdict.cause {
        Cause::OutOfMemory { memory: Memory::Device, .. } => {
            let first = match (info.falls_back, &info.config) {
                (true, _) => Text::new(
                    "zeropilot has no further fallback for this run (--max-fallbacks limits their number): use more GPUs, LoRA or shorter sequences",
                    "这次运行没有可用的降级方案了（--max-fallbacks 限制降级次数）：增加卡数、改用 LoRA 或缩短序列",
                ),
                (false, Some(_)) => Text::new(
                    "let zeropilot try the next fallback (--fallback)",
                    "加 --fallback 让 zeropilot 自动换用下一个降级方案",
                ),
                (false, None) => Text::new(
                    "use a smaller batch, gradient checkpointing or more GPUs",
                    "减小 batch、开启梯度检查点或增加卡数",
                ),
            };
            let first = first.get(language);
            tr!(language, "{first}, or {general}", "{first}，或{general}")
        }
        Cause::ProgramFailed { .. } | Cause::EndedEarly { .. } => tr!(
            language,
            "{general} (tail-{number}.log in the record)",
            "{general}（记录里的 tail-{number}.log）"
        ),
        Cause::Hang { .. } if has_stacks => tr!(
            language,
            "{general}. The stacks of the ranks are in stacks-{number} in the record",
            "{general}。各 rank 的调用栈保存在记录的 stacks-{number} 中"
        ),
        _ => general.to_owned(),
    })
}

/// What to do next whatever the run was started with, where something can be said.
fn advice(cause: &Cause, language: Language) -> Option<&'static str> {
    let text = match cause {
        Cause::OutOfMemory { memory: Memory::Device, .. } => Text::new(
            "see what uses GPU memory: zeropilot memory --model … --gpus … --config …",
            "用 zeropilot memory --model … --gpus … --config … 查看显存被什么占用",
        ),
        Cause::OutOfMemory { memory: Memory::Host, .. } => Text::new(
            "offload less, use fewer data loader workers or a higher stage, or add host memory",
            "减少卸载、减少数据加载进程、提高 stage，或者增加主机内存",
        ),
        Cause::ProgramFailed { .. } => {
            Text::new("look for the cause in the last lines of the log", "在日志末尾查找原因")
        }
        Cause::NoInput => Text::new(
            "zeropilot gives the training program no terminal: pass the answer as an argument or an environment variable (for example HF_TOKEN, WANDB_API_KEY or WANDB_MODE=offline), or remove the question",
            "zeropilot 不给训练程序提供终端：请用参数或环境变量给出回答（例如 HF_TOKEN、WANDB_API_KEY、WANDB_MODE=offline），或去掉这个提问",
        ),
        Cause::EndedEarly { .. } => Text::new(
            "if the program was meant to stop there, ignore this; otherwise, resume from the last checkpoint, and look for the reason in the last lines of the log",
            "如果程序本来就该在这里停止，可以忽略；否则从最近的 checkpoint 续训，并在日志末尾查找原因",
        ),
        Cause::Crashed { .. } => Text::new(
            "set PYTHONFAULTHANDLER=1 to see where native code crashed, and check that the versions of PyTorch, CUDA and extensions match",
            "设置 PYTHONFAULTHANDLER=1 查看原生代码崩溃的位置，并检查 PyTorch、CUDA 和扩展的版本是否匹配",
        ),
        Cause::DeviceFailed { .. } => Text::new(
            "look for Xid errors in dmesg and check `nvidia-smi -q -d ECC`; if the failure happens again, take the node out of service",
            "查看 dmesg 中的 Xid 错误和 `nvidia-smi -q -d ECC`；再次出现就停用这个节点",
        ),
        Cause::SharedMemoryFull => Text::new(
            "make /dev/shm larger (docker run --shm-size=16g or --ipc=host; in Kubernetes, mount an emptyDir with medium: Memory at /dev/shm), or use fewer data loader workers",
            "增大 /dev/shm（docker run --shm-size=16g 或 --ipc=host；Kubernetes 中把 medium: Memory 的 emptyDir 挂到 /dev/shm），或减少数据加载进程",
        ),
        Cause::DriverTooOld => Text::new(
            "update the driver of this machine (nvidia-smi shows the CUDA version it supports), or install a PyTorch built for that CUDA version",
            "升级本机驱动（nvidia-smi 会显示它支持的 CUDA 版本），或安装为该 CUDA 版本构建的 PyTorch",
        ),
        Cause::CudaError { .. } => Text::new(
            "look for Xid errors in dmesg to find out whether a kernel or the GPU is at fault. The NVIDIA driver's manual lists the Xid errors that mean hardware faults. CUDA_LAUNCH_BLOCKING=1 shows the failing call, and NCCL_DEBUG=WARN shows why NCCL failed",
            "查看 dmesg 中的 Xid 错误，判断是 kernel 有错还是 GPU 故障（NVIDIA 驱动手册列出了哪些属于硬件故障）。CUDA_LAUNCH_BLOCKING=1 可定位出错的调用，NCCL_DEBUG=WARN 显示 NCCL 的失败原因",
        ),
        Cause::HubUnavailable => Text::new(
            "try again later, or download the model first (hf download) and set HF_HUB_OFFLINE=1. After HTTP status 429, log in and let only one rank per node download",
            "稍后重试，或先下载模型（hf download）再设置 HF_HUB_OFFLINE=1；出现 HTTP 状态码 429 时先登录，并且每个节点只用一个 rank 下载",
        ),
        Cause::NoRendezvous => Text::new(
            "check on every node that the host name in --master-addr resolves and that no other process listens on --master-port",
            "在每个节点上检查 --master-addr 的主机名能否解析，以及 --master-port 是否被其他进程占用",
        ),
        Cause::CollectiveTimeout | Cause::Hang { .. } => Text::new(
            "look for a rank that runs different code (uneven data, saving on rank 0 only, generation in ZeRO stage 3)",
            "检查是否有 rank 执行了不同的代码（数据不均、只在 rank 0 保存、ZeRO stage 3 下生成）",
        ),
        Cause::PeerLost => Text::new(
            "check the record of the other machine and the network between the machines; with --max-restarts, the run starts again on all machines",
            "查看另一台机器上的运行记录和两机之间的网络；加上 --max-restarts，训练会在所有机器上重新启动",
        ),
        Cause::LossScaleFloor | Cause::NotFinite => Text::new(
            "lower the learning rate and check the data of the first step that the report names. Replace fp16 with bf16 if the GPUs support it",
            "降低学习率，核对报告指出的第一个异常步的数据；配置用的是 fp16 且 GPU 支持时，改用 bf16",
        ),
        Cause::LossSpike { .. } => Text::new(
            "lower the learning rate, clip gradients, or skip the data around this step. A run that resumes from a checkpoint trains on the same data again",
            "降低学习率、做梯度裁剪，或跳过该步附近的数据。从 checkpoint 续训后，还会用到同样的数据",
        ),
        Cause::ConfigRejected => Text::new(
            "run zeropilot check to find the errors in the config",
            "运行 zeropilot check 查找配置中的错误",
        ),
        Cause::DiskFull => Text::new(
            "keep fewer checkpoints; each needs about 14 bytes per trained parameter",
            "少保留几个 checkpoint；每个可训练参数在 checkpoint 里约占 14 字节",
        ),
        Cause::CheckpointUnreadable => Text::new(
            "resume with the number of ranks and the ZeRO stage that wrote the checkpoint, or convert the checkpoint with ds_to_universal",
            "用保存时的总卡数和 ZeRO stage 续训，或先用 ds_to_universal 转换",
        ),
        Cause::Unproven | Cause::LauncherKilled { .. } | Cause::RankKilled { .. } => Text::new(
            "check the scheduler, the kernel log (dmesg) and resource limits to find out what killed the process",
            "检查调度系统、内核日志（dmesg）和资源限制，查明进程被什么杀死",
        ),
        _ => return None,
    };
    Some(text.get(language))
}

/// Seconds as `1:02:03`.
pub fn clock(seconds: u64) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// That no run has this name.
pub fn no_such_run(name: &str, language: Language) -> String {
    let name = escaped(name);
    tr!(
        language,
        "error: there is no run `{name}`\n  help: list all runs with `zeropilot runs`",
        "错误：没有名为 `{name}` 的运行\n  建议：用 `zeropilot runs` 列出所有运行"
    )
}

/// That nothing was recorded where records are kept.
pub fn no_runs_yet(home: &str, language: Language) -> String {
    let home = escaped(home);
    tr!(
        language,
        "error: {home} has no recorded runs yet\n  help: start one with `zeropilot run -- COMMAND`, where COMMAND starts the training; for records elsewhere, give their directory or set ZEROPILOT_RUNS",
        "错误：{home} 里还没有运行记录\n  建议：用 `zeropilot run -- 启动命令` 启动训练；记录在别处时，给出它的目录或设置 ZEROPILOT_RUNS"
    )
}

/// An attempt in a line.
pub fn attempt(attempt: &Attempt, language: Language) -> String {
    let strategy = setup_words(&attempt.strategy, language);
    let steps = attempt
        .last_step
        .map_or(String::new(), |step| tr!(language, ", step {step}", "，第 {step} 步"));
    let cause = cause_words(&attempt.cause, language);
    let (number, took) = (attempt.number, clock(attempt.seconds as u64));
    tr!(
        language,
        "{number}. {strategy}: {cause}{steps}, {took}",
        "{number}. {strategy}：{cause}{steps}，{took}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_know_every_cause() {
        let all = [
            Cause::Completed,
            Cause::CollectiveTimeout,
            Cause::PeerLost,
            Cause::LossScaleFloor,
            Cause::ConfigRejected,
            Cause::DiskFull,
            Cause::Unproven,
            Cause::NoInput,
            Cause::EndedEarly { step: 7, total: 15 },
            Cause::Refused,
            Cause::Hang { ranks: vec![1] },
            Cause::RankKilled { rank: Some(1), signal: 9 },
            Cause::Crashed { rank: None, signal: 11 },
            Cause::DeviceFailed { rank: None },
            Cause::NoRendezvous,
            Cause::SharedMemoryFull,
            Cause::DriverTooOld,
            Cause::CudaError { rank: None },
            Cause::HubUnavailable,
        ];
        for cause in all {
            assert!(cause_words(&cause, Language::English).is_ascii(), "{cause:?}");
            assert!(!cause_words(&cause, Language::Chinese).is_ascii(), "{cause:?}");
        }
    }
}
