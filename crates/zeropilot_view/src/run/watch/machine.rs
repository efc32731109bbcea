//! How a machine stands.

use serde_json::{Value, json};
use zeropilot_cluster::discovery::NoDriver;
use zeropilot_record::GpuUse;
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::Bytes;

use super::chart::{Glyphs, bar};
use crate::escaped;

/// Memory of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostMemory {
    /// All of it.
    pub total: u64,
    /// What programs can still have.
    pub available: u64,
}

impl HostMemory {
    /// What is taken.
    pub fn used(&self) -> u64 {
        self.total.saturating_sub(self.available)
    }

    /// From `/proc/meminfo`.
    pub fn read(text: &str) -> Option<Self> {
        let kib = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let bytes = |name| kib(name).map(|kib| kib << 10);
        Some(Self { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? })
    }
}

/// A rank that somebody's launcher started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingProcess {
    /// Its number in its world.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Its resident bytes.
    pub rss: u64,
    /// What it runs.
    pub command: String,
}

/// A machine at one moment.
#[derive(Debug, Clone)]
pub struct MachineLook {
    /// Its GPUs, or why they are not known.
    pub gpus: Result<Vec<GpuUse>, NoDriver>,
    /// Its memory.
    pub memory: Option<HostMemory>,
    /// The ranks on it.
    pub processes: Vec<TrainingProcess>,
}

/// Why there are no GPUs to show; nothing if there are.
pub fn no_gpus(gpus: &Result<Vec<GpuUse>, NoDriver>, language: Language) -> Option<String> {
    match gpus {
        Ok(gpus) if !gpus.is_empty() => None,
        Ok(_) => {
            Some(tr!(language, "the NVIDIA driver reports no GPU", "NVIDIA 驱动没有报告任何 GPU"))
        }
        Err(NoDriver::NoLibrary) => Some(tr!(
            language,
            "no GPU: the NVIDIA driver is not installed",
            "没有 GPU：本机没有安装 NVIDIA 驱动"
        )),
        Err(NoDriver::Refuses(reason)) => Some(tr!(
            language,
            "the NVIDIA driver does not respond: {}",
            "NVIDIA 驱动没有响应：{}",
            escaped(reason)
        )),
    }
}

/// Work, power and warmth of a GPU.
pub fn gpu_facts(gpu: &GpuUse, glyphs: Glyphs) -> String {
    let degrees = match glyphs {
        Glyphs::Blocks => "°C",
        Glyphs::Ascii => "C",
    };
    let facts = [
        gpu.utilization.map(|percent| format!("{percent:>3} %")),
        gpu.watts.map(|watts| format!("{watts:>4.0} W")),
        gpu.celsius.map(|celsius| format!("{celsius:>3} {degrees}")),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// Ranks on a GPU, else the processes.
pub fn gpu_tenants(gpu: &GpuUse, language: Language) -> String {
    let tenant = |process: &zeropilot_record::GpuProcess| {
        let name = match process.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("{} {}", Text::new("process", "进程").get(language), process.pid),
        };
        process.used.map_or(name.clone(), |used| format!("{name} {}", Bytes(used)))
    };
    gpu.processes.iter().map(tenant).collect::<Vec<_>>().join(", ")
}

/// A GPU in a line.
pub fn gpu_line(gpu: &GpuUse, glyphs: Glyphs, language: Language) -> String {
    let parts = [
        format!("GPU {}", gpu.index),
        escaped(&gpu.name).into_owned(),
        format!("{} / {}", Bytes(gpu.used), Bytes(gpu.total)),
        gpu_facts(gpu, glyphs),
        gpu_tenants(gpu, language),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ")
}

/// The words before the memory of the machine.
pub fn memory_head(language: Language) -> &'static str {
    Text::new("host memory", "主机内存").get(language)
}

/// The words above the ranks.
pub fn processes_head(look: &MachineLook, language: Language) -> String {
    let text = match look.processes.len() {
        0 => Text::new("no training processes", "没有训练进程"),
        _ => Text::new("training processes", "训练进程"),
    };
    text.get(language).to_owned()
}

/// The machine in a few lines.
pub fn text(look: &MachineLook, width: usize, glyphs: Glyphs, language: Language) -> String {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(no_gpus(&look.gpus, language));
    lines.extend(look.gpus.iter().flatten().map(|gpu| gpu_line(gpu, glyphs, language)));
    if let Some(memory) = &look.memory {
        let bar = bar(memory.used(), None, memory.total, width.clamp(50, 120) - 40, glyphs);
        let (used, total) = (Bytes(memory.used()), Bytes(memory.total));
        lines.push(format!("{}  {bar}  {used} / {total}", memory_head(language)));
    }
    lines.push(processes_head(look, language));
    for process in &look.processes {
        let TrainingProcess { rank, pid, rss, command } = process;
        lines.push(format!("rank {rank:<4} {pid:>8}  {:>8}  {}", Bytes(*rss), escaped(command)));
    }
    lines.join("\n") + "\n"
}

/// The same for machines.
pub fn json(look: &MachineLook) -> Value {
    let process = |process: &TrainingProcess| {
        json!({
            "rank": process.rank,
            "pid": process.pid,
            "rss": process.rss,
            "command": process.command,
        })
    };
    json!({
        "shape": 1,
        "gpus": look.gpus.as_ref().ok(),
        "memory": look.memory.map(|memory| json!({
            "total": memory.total,
            "available": memory.available,
        })),
        "processes": look.processes.iter().map(process).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       16384000 kB\nMemFree:          100000 kB\nMemAvailable:    8192000 kB\n";
        let memory = HostMemory::read(text).expect("memory");
        assert_eq!((memory.total, memory.used()), (16_384_000 << 10, 8_192_000 << 10));
        assert_eq!(HostMemory::read("MemTotal: 1 kB\n"), None);
    }
}
