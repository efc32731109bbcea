//! Supervised runs in words: what happens, why they ended, what to do.

mod drift;
mod evidence;
mod hang;
pub mod nodes;
pub mod report;
mod shortage;
mod status;
pub mod watch;

use std::path::Path;

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;
use zeropilot_record::{
    Attempt, Cause, Evidence, Memory, NoResume, Phase, RunEvent, RunInfo, Setup, Shortage, Verdict,
};
use zeropilot_text::{Language, Text, tr};

use self::nodes::JobLook;
use crate::{escaped, strategy_words, system};

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
        RunEvent::Resuming { checkpoint, step } => tr!(
            language,
            "resuming from step {step}: {}",
            "从第 {step} 步续训：{}",
            escaped(checkpoint)
        ),
        RunEvent::BeginningAnew { reason, checkpoints } => {
            anew(*reason, checkpoints.as_deref(), language)
        }
        RunEvent::NotStartedAgain { reason, checkpoints } => {
            not_again(*reason, checkpoints, language)
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
        RunEvent::CheckpointsShared { run, checkpoints } => tr!(
            language,
            "warning: run {} on this machine also writes its checkpoints to {}; the two overwrite each other's checkpoints\n  help: use a separate directory for each run",
            "警告：本机的运行 {} 也在向 {} 写 checkpoint，两者会互相覆盖\n  建议：给每个运行单独的目录",
            escaped(run),
            escaped(checkpoints)
        ),
        RunEvent::NoRanksYet { seconds } => tr!(
            language,
            "no rank has started after {seconds:.0} s, and the launcher is idle: it is probably waiting for other nodes\n  help: check that the command runs on every node, with the same master address, port and number of nodes; Ctrl-C stops it",
            "{seconds:.0} 秒后仍没有 rank 启动，启动器也处于空闲：它很可能在等其他节点\n  建议：确认每个节点都在运行该命令，且主节点地址、端口和节点数相同；Ctrl-C 可停止"
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
            "第 {attempt} 次运行结束：{}",
            cause_words(cause, language)
        ),
        _ => return drift::happened(happening, language),
    };
    Some(text)
}

fn no_resume(reason: NoResume, language: Language) -> &'static str {
    let reason = match reason {
        NoResume::NoCheckpoint => Text::new(
            "this run has not written a complete checkpoint yet",
            "本次运行还没有写出完整的 checkpoint",
        ),
        NoResume::OfAnotherRun => Text::new(
            "the checkpoints in the directory are from another run",
            "目录里的 checkpoint 来自另一次运行",
        ),
        NoResume::OptionUnknown => Text::new(
            "zeropilot needs --resume-with to make the program resume from a checkpoint",
            "zeropilot 需要 --resume-with 才能让训练程序续训",
        ),
        NoResume::OtherShape => Text::new(
            "DeepSpeed cannot load the last checkpoint in this stage and with this number of ranks",
            "DeepSpeed 无法在这个 stage 和总卡数下加载最近的 checkpoint",
        ),
        NoResume::NotLinkable => Text::new(
            "zeropilot cannot create a link to the checkpoint",
            "zeropilot 无法为 checkpoint 建立链接",
        ),
    };
    reason.get(language)
}

fn not_again(reason: NoResume, checkpoints: &str, language: Language) -> String {
    let (reason, checkpoints) = (no_resume(reason, language), escaped(checkpoints));
    tr!(
        language,
        "not restarting: {reason}. The command does not contain {checkpoints}, so a new attempt would overwrite the checkpoints in this directory\n  help: pass the directory as an option of the training program, or start again with another directory",
        "不再重新启动：{reason}；命令里没有写出 {checkpoints}，再次运行会覆盖其中的 checkpoint\n  建议：用训练程序的选项指定该目录，或换一个目录重新启动"
    )
}

fn anew(reason: NoResume, checkpoints: Option<&str>, language: Language) -> String {
    let reason = no_resume(reason, language);
    let fresh = checkpoints.map(|path| escaped(path));
    match fresh {
        None => tr!(language, "restarting from scratch: {reason}", "从头开始：{reason}"),
        Some(path) => tr!(
            language,
            "restarting from scratch: {reason}; new checkpoints go to {path}",
            "从头开始：{reason}；新 checkpoint 写入 {path}"
        ),
    }
}

/// What an attempt runs with.
fn setup_words(setup: &Setup, language: Language) -> String {
    match setup {
        Setup::Strategy(strategy) => strategy_words(strategy, language),
        Setup::Text(text) if !text.is_empty() => escaped(text).into_owned(),
        Setup::AsGiven | Setup::Text(_) => tr!(language, "as given", "原配置"),
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
        Cause::RankKilled { rank, signal } => match rank {
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
        },
        Cause::Crashed { rank: Some(rank), signal } => tr!(
            language,
            "rank {rank} crashed (signal {signal})",
            "rank {rank} 崩溃（信号 {signal}）"
        ),
        Cause::Crashed { rank: None, signal } => {
            tr!(language, "a rank crashed (signal {signal})", "有一个 rank 崩溃（信号 {signal}）")
        }
        Cause::DeviceFailed { rank: Some(rank) } => {
            tr!(language, "a GPU failed, on rank {rank}", "GPU 硬件故障（rank {rank}）")
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
        Cause::LauncherKilled { signal: Some(signal) } => tr!(
            language,
            "the launcher was killed (signal {signal})",
            "启动器被杀死（信号 {signal}）"
        ),
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
            "lost the connection to a rank on another machine",
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
        Cause::NotFinite => fixed("the loss is NaN or infinite", "loss 变成了 NaN 或无穷大"),
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

/// That the record cannot be written any more.
pub fn unrecorded(directory: &Path, error: &std::io::Error, language: Language) -> String {
    let (directory, error) = (directory.display().to_string(), system::failure(error, language));
    let directory = escaped(&directory);
    tr!(
        language,
        "warning: the record in {directory} is incomplete: {error}\n  help: the run continues; free some disk space there, or use --record DIR next time",
        "警告：{directory} 里的运行记录不完整：{error}\n  建议：训练照常进行；请腾出磁盘空间，或下次用 --record 目录 换一个位置"
    )
}

/// That a message could not be sent.
pub fn unsent(why: &str, language: Language) -> String {
    let why = escaped(why);
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
        "cause of the memory shortage, from the last lines of the run in {path}:\n{why}",
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

/// What to do next, where something can be said.
pub fn advice(cause: &Cause, language: Language) -> Option<&'static str> {
    let text = match cause {
        Cause::OutOfMemory { memory: Memory::Device, .. } => Text::new(
            "let zeropilot try the next fallback (--fallback), or see what uses the memory: zeropilot memory --model … --gpus … --config …",
            "加 --fallback 让 zeropilot 自动换用下一个降级方案，或用 zeropilot memory --model … --gpus … --config … 查看显存被什么占用",
        ),
        Cause::OutOfMemory { memory: Memory::Host, .. } => Text::new(
            "offload less, use fewer data loader workers or a higher stage, or add host memory",
            "减少卸载、减少数据加载进程、提高 stage，或者增加主机内存",
        ),
        Cause::ProgramFailed { .. } => Text::new(
            "look for the cause in the last lines of the log: tail-N.log in the record",
            "在日志末尾查找原因，即记录里的 tail-N.log",
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
            "make /dev/shm larger (docker run --shm-size=16g or --ipc=host; in Kubernetes an emptyDir with medium: Memory at /dev/shm), or use fewer data workers",
            "增大 /dev/shm（docker run --shm-size=16g 或 --ipc=host；Kubernetes 中把 medium: Memory 的 emptyDir 挂到 /dev/shm），或减少数据加载进程",
        ),
        Cause::DriverTooOld => Text::new(
            "update the driver of this machine (nvidia-smi shows the CUDA version it supports), or install a PyTorch built for that CUDA version",
            "升级本机驱动（nvidia-smi 会显示它支持的 CUDA 版本），或安装为该 CUDA 版本构建的 PyTorch",
        ),
        Cause::CudaError { .. } => Text::new(
            "look for Xid errors in dmesg: a kernel or the GPU is at fault. The NVIDIA driver's manual lists the Xid errors that mean hardware faults. CUDA_LAUNCH_BLOCKING=1 shows the failing call, and NCCL_DEBUG=WARN shows why NCCL failed",
            "查看 dmesg 中的 Xid 错误，判断是 kernel 有错还是 GPU 故障（NVIDIA 驱动手册列出了哪些属于硬件故障）。CUDA_LAUNCH_BLOCKING=1 可定位出错的调用，NCCL_DEBUG=WARN 显示 NCCL 的失败原因",
        ),
        Cause::HubUnavailable => Text::new(
            "try again later, or download the model first (hf download) and set HF_HUB_OFFLINE=1; after 429, log in and let one rank per node download",
            "稍后重试，或先下载模型（hf download）再设置 HF_HUB_OFFLINE=1；出现 429 时先登录，并让每个节点只有一个 rank 下载",
        ),
        Cause::NoRendezvous => Text::new(
            "check on every node that the host name in --master-addr resolves and that no other process listens on --master-port",
            "在每个节点上检查 --master-addr 的主机名能否解析，以及 --master-port 是否被其他进程占用",
        ),
        Cause::CollectiveTimeout | Cause::Hang { .. } => Text::new(
            "look for a rank that runs different code (uneven data, saving on rank 0 only, generation in ZeRO stage 3). After a hang, stacks-N in the record has the stacks of the ranks",
            "检查是否有 rank 执行了不同的代码（数据不均、只在 rank 0 保存、ZeRO stage 3 下生成）。卡住时各 rank 的调用栈保存在记录的 stacks-N 中",
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
            "lower the learning rate, clip gradients, or skip the data around this step. After a resume from a checkpoint, the run trains on the same data again",
            "降低学习率、做梯度裁剪，或跳过该步附近的数据。从 checkpoint 续训后，还会用到同样的数据",
        ),
        Cause::ConfigRejected => Text::new(
            "run zeropilot check to find the errors in the config",
            "运行 zeropilot check 查找配置中的错误",
        ),
        Cause::DiskFull => Text::new(
            "keep fewer checkpoints; each needs about 14 bytes per trained parameter",
            "少保留几个 checkpoint；其中每个训练参数约占 14 字节",
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

/// The end of a run.
pub fn verdict(verdict: &Verdict, directory: &str, language: Language) -> String {
    let cause = cause_words(&verdict.cause, language);
    let (id, directory) = (escaped(&verdict.id), escaped(directory));
    let mut text = tr!(language, "run {id}: {cause}\n", "运行 {id}：{cause}\n");
    let last = verdict.attempts.last();
    for evidence in last.map(|attempt| attempt.evidence.as_slice()).unwrap_or_default() {
        if verdict.cause != Cause::Completed {
            let evidence = evidence::words(evidence, language);
            text.push_str(&format!("  - {}\n", escaped(&evidence)));
        }
    }
    // Where ranks stood explains more than what hangs have in common.
    let is_explained = last.is_some_and(|attempt| {
        attempt.evidence.iter().any(|evidence| matches!(evidence, Evidence::Hang(_)))
    });
    if let Some(advice) = advice(&verdict.cause, language).filter(|_| !is_explained) {
        let head = Text::new("help: ", "建议：").get(language);
        text.push_str(&format!("  {head}{advice}\n"));
    }
    let head = Text::new("record: ", "记录：").get(language);
    text.push_str(&format!("  {head}{directory}"));
    text
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

/// A run in a list.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// What was asked for.
    pub info: &'a RunInfo,
    /// What became of it.
    pub verdict: Option<&'a Verdict>,
    /// Whether its supervisor lives.
    pub is_running: bool,
}

impl Row<'_> {
    fn state(&self, language: Language) -> String {
        match self.verdict {
            Some(verdict) => cause_words(&verdict.cause, language),
            None if self.is_running => tr!(language, "running", "运行中"),
            None => {
                tr!(language, "lost: its supervisor is no longer running", "已丢失：监督进程已退出")
            }
        }
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

/// A list of runs for people. Runs on the nodes of one job are below it.
pub fn list(rows: &[Row<'_>], jobs: &[JobLook], language: Language) -> String {
    if rows.is_empty() {
        return tr!(
            language,
            "no runs yet; `zeropilot run -- COMMAND` starts and records one\n",
            "还没有运行记录；用 `zeropilot run -- 启动命令` 启动训练就会留下记录\n"
        );
    }
    let widest = |cells: &[String]| cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
    let ids: Vec<String> = rows.iter().map(|row| escaped(&row.info.id).into_owned()).collect();
    let states: Vec<String> = rows.iter().map(|row| row.state(language)).collect();
    let (id_width, state_width) = (widest(&ids), widest(&states));
    let line = |index: usize| {
        let (id, state) = (&ids[index], &states[index]);
        let gap = |cell: &str, width: usize| " ".repeat(width - cell.width());
        let command = rows[index].info.command.join(" ");
        format!(
            "{id}{}  {state}{}  {}\n",
            gap(id, id_width),
            gap(state, state_width),
            escaped(&shortened(&command, 60)),
        )
    };
    let mut text = String::new();
    let mut listed = vec![false; rows.len()];
    for index in 0..rows.len() {
        if std::mem::replace(&mut listed[index], true) {
            continue;
        }
        let id = &rows[index].info.id;
        let is_of = |job: &&JobLook| job.members.iter().any(|node| node.id == *id);
        let Some(job) = jobs.iter().find(is_of) else {
            text.push_str(&line(index));
            continue;
        };
        text.push_str(&format!("{}\n", nodes::head(job, language)));
        for node in &job.members {
            let Some(member) = rows.iter().position(|row| row.info.id == node.id) else { continue };
            listed[member] = true;
            text.push_str(&format!("  {}", line(member)));
        }
    }
    text
}

/// A text of so many characters at most, the last of which says that there is more.
fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// A list of runs for machines.
pub fn list_json(rows: &[Row<'_>], jobs: &[JobLook]) -> Value {
    let row = |row: &Row<'_>| {
        let is_of = |job: &&JobLook| job.members.iter().any(|node| node.id == row.info.id);
        json!({
            "id": row.info.id,
            "state": match (row.verdict, row.is_running) {
                (Some(_), _) => "ended",
                (None, true) => "running",
                (None, false) => "lost",
            },
            "run": row.info,
            "verdict": row.verdict,
            "job": jobs.iter().find(is_of).map(nodes::json),
        })
    };
    rows.iter().map(row).collect()
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
    fn what_is_cut_says_so() {
        assert_eq!(shortened("torchrun", 8), "torchrun");
        assert_eq!(shortened("torchrun t", 8), "torchru…");
    }

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
