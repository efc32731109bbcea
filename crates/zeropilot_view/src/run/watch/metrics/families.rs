//! What is measured, under which name.

use zeropilot_record::GpuUse;
use zeropilot_text::Text;

use crate::run::watch::machine::HostMemory;
use crate::run::watch::{Look, RankState};

/// Units that a name may end with, as the format asks for.
const UNITS: [&str; 5] = ["bytes", "seconds", "ratio", "watts", "celsius"];

/// A metric: its name and what it says.
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) help: Text,
}

impl Family {
    pub(super) fn unit(&self) -> Option<&'static str> {
        let last = self.name.rsplit('_').next()?;
        UNITS.into_iter().find(|unit| *unit == last)
    }
}

const fn family(name: &'static str, en: &'static str, zh: &'static str) -> Family {
    Family { name, help: Text::new(en, zh) }
}

pub(super) const INFO: Family =
    family("zeropilot_run", "Information about the run.", "运行的信息。");

type Of<T, V> = (Family, fn(&T) -> V);

pub(super) const RESTARTS: Family = family(
    "zeropilot_run_restarts",
    "Starts of the command after the first.",
    "首次启动之后又启动了几次。",
);

pub(super) const RUN: [Of<Look, Option<f64>>; 13] = [
    (family("zeropilot_run_running", "1 while the run is active.", "运行中为 1。"), |look| {
        Some(f64::from(u8::from(look.is_running)))
    }),
    (
        family(
            "zeropilot_run_exit_code",
            "Exit code of the run (docs/run.md).",
            "退出码（见 docs/zh/run.md）。",
        ),
        |look| Some(f64::from(look.verdict.as_ref()?.exit_code)),
    ),
    (
        family("zeropilot_run_elapsed_seconds", "Time since the run started.", "已运行时间。"),
        |look| Some(look.elapsed() as f64),
    ),
    (
        family(
            "zeropilot_run_remaining_seconds",
            "Estimated time left at the current speed.",
            "按当前速度估计的剩余时间。",
        ),
        Look::remaining,
    ),
    (
        family("zeropilot_run_attempt", "Number of the current attempt.", "当前是第几次尝试。"),
        |look| Some(f64::from(look.digest.attempt.as_ref()?.0)),
    ),
    (
        family("zeropilot_run_step", "The last optimizer step.", "最近一次参数更新的步数。"),
        |look| Some(look.digest.step? as f64),
    ),
    (
        family("zeropilot_run_total_steps", "Total number of optimizer steps.", "总步数。"),
        |look| Some(look.total_steps()? as f64),
    ),
    (family("zeropilot_run_loss", "The last loss.", "最近的 loss。"), |look| look.digest.loss),
    (
        family("zeropilot_run_steps_per_second", "Optimizer steps per second.", "每秒步数。"),
        |look| look.digest.rates.last(),
    ),
    (
        family(
            "zeropilot_run_tokens_per_second",
            "Tokens per second on all ranks, computed from full sequences unless the log reports tokens.",
            "所有 rank 每秒的 token 数；日志未给出时按满长序列计算。",
        ),
        |look| look.digest.tokens_per_second,
    ),
    (
        family(
            "zeropilot_run_last_checkpoint_step",
            "Step of the newest complete checkpoint of the run.",
            "本次运行最新的完整 checkpoint 的步数。",
        ),
        |look| Some(look.checkpoint.as_ref()?.step as f64),
    ),
    (
        family(
            "zeropilot_run_last_checkpoint_timestamp_seconds",
            "Time at which the newest complete checkpoint of the run was written (Unix time).",
            "本次运行最新的完整 checkpoint 的写入时间（Unix 时间）。",
        ),
        |look| look.checkpoint.as_ref()?.at,
    ),
    (
        family(
            "zeropilot_run_predicted_memory_bytes",
            "Predicted memory per GPU.",
            "单卡显存预测值。",
        ),
        |look| Some(look.info.predicted? as f64),
    ),
];

pub(super) const RANKS: [Of<RankState, Option<u64>>; 4] = [
    (
        family(
            "zeropilot_rank_resident_memory_bytes",
            "Resident host memory of the rank (RSS).",
            "rank 占用的主机内存（RSS）。",
        ),
        |state| Some(state.resident.now),
    ),
    (
        family(
            "zeropilot_rank_resident_memory_peak_bytes",
            "Peak resident host memory of the rank (RSS) in this attempt.",
            "本次运行中 rank 占用主机内存（RSS）的峰值。",
        ),
        |state| Some(state.resident.peak),
    ),
    (
        family(
            "zeropilot_rank_gpu_memory_bytes",
            "GPU memory used by the rank.",
            "rank 占用的显存。",
        ),
        |state| Some(state.gpu?.1.now),
    ),
    (
        family(
            "zeropilot_rank_gpu_memory_peak_bytes",
            "Peak GPU memory used by the rank in this attempt.",
            "本次运行中 rank 占用显存的峰值。",
        ),
        |state| Some(state.gpu?.1.peak),
    ),
];

pub(super) const GPUS: [Of<GpuUse, Option<f64>>; 5] = [
    (family("zeropilot_gpu_memory_bytes", "Total GPU memory.", "显存总量。"), |gpu| {
        Some(gpu.total as f64)
    }),
    (family("zeropilot_gpu_memory_used_bytes", "Used GPU memory.", "已用显存。"), |gpu| {
        Some(gpu.used as f64)
    }),
    (
        family(
            "zeropilot_gpu_utilization_ratio",
            "GPU utilization: share of the last sampling period in which a kernel ran.",
            "GPU 利用率：最近一个采样周期内有 kernel 运行的时间占比。",
        ),
        |gpu| Some(f64::from(gpu.utilization?) / 100.0),
    ),
    (family("zeropilot_gpu_power_watts", "Power draw of the GPU.", "GPU 功耗。"), |gpu| {
        gpu.watts
    }),
    (
        family("zeropilot_gpu_temperature_celsius", "Temperature of the GPU.", "GPU 温度。"),
        |gpu| gpu.celsius.map(f64::from),
    ),
];

pub(super) const HOST: [Of<HostMemory, f64>; 2] = [
    (family("zeropilot_host_memory_bytes", "Total host memory.", "主机内存总量。"), |host| {
        host.total as f64
    }),
    (
        family("zeropilot_host_memory_available_bytes", "Available host memory.", "可用主机内存。"),
        |host| host.available as f64,
    ),
];
