//! What a config needs against what a machine has.

use zeropilot_cluster::discovery::{NoDriver, NotGpus, equal_gpus, visible};
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::advisory::{RULE as ADVISORY_RULE, met_by};
use zeropilot_lint::{Argument, Report, Severity};
use zeropilot_text::{Language, Text};
use zeropilot_units::Bytes;

use crate::finding::Finding;
use crate::machine::{Disk, Limit, Machine, Place};
use crate::needs::Needs;
use crate::packages::Python;
use crate::words;

/// What is known about the run beside its machine.
#[derive(Debug, Clone, Default)]
pub struct Circumstances<'a> {
    /// What the config asks for.
    pub needs: Needs,
    /// The verdict on the config for the installed engine, if there is a config.
    pub report: Option<&'a Report>,
    /// What the processes on this host need together, and how many they are, if a model is given.
    pub host_memory: Option<(Bytes, u64)>,
    /// Whether ranks are told to compute on CPUs (`DS_ACCELERATOR=cpu`).
    pub on_cpu: bool,
}

/// What ranks on CPUs do not miss.
const OF_GPUS: [&str; 4] = ["no-nvcc", "cpu-torch", "no-driver", "no-gpu"];

/// Docker gives a container 64 MiB unless it is told otherwise.
const LEAST_SHM: Bytes = Bytes(1 << 30);
const LEAST_FILES: u64 = 4096;
const LEAST_DISK: Bytes = Bytes(100 << 30);

/// Everything that is missing, worst first.
pub fn examine(
    machine: &Machine,
    circumstances: &Circumstances<'_>,
    language: Language,
) -> Vec<Finding> {
    let mut found = Vec::new();
    python(machine, circumstances, language, &mut found);
    builds(machine, &circumstances.needs, &mut found);
    gpus(machine, &mut found);
    host(machine, circumstances, &mut found);
    for disk in &machine.disks {
        disk_findings(disk, &mut found);
    }
    for lock in machine.extension_locks.iter().filter(|lock| !lock.is_held) {
        let finding = Finding::new("stale-lock", Severity::Warning, &words::STALE_LOCK);
        let minutes = lock.age.map_or_else(|| "?".to_owned(), |age| (age / 60).to_string());
        found.push(finding.with("path", lock.path.clone()).with("minutes", minutes));
    }
    if circumstances.on_cpu {
        found.retain(|finding| !OF_GPUS.contains(&finding.name));
    }
    found.sort_by_key(|finding| finding.severity);
    found
}

fn python(
    machine: &Machine,
    circumstances: &Circumstances<'_>,
    language: Language,
    found: &mut Vec<Finding>,
) {
    let Some(python) = &machine.python else {
        found.push(Finding::new("no-python", Severity::Error, &words::NO_PYTHON));
        return;
    };
    for (package, reason, command) in required(circumstances.report) {
        let versions: Vec<&str> =
            python.all(package).map(|package| package.version.as_str()).collect();
        match versions.as_slice() {
            [] => found.push(missing(python, package, reason, command)),
            [_] => {}
            several => found.push(
                Finding::new("several-versions", Severity::Warning, &words::SEVERAL_VERSIONS)
                    .with("package", package)
                    .with("versions", several.join(", ")),
            ),
        }
    }
    let count = machine.gpus.as_ref().map_or(0, Vec::len);
    if let Some(torch) =
        python.package("torch").filter(|torch| count > 0 && torch.version.ends_with("+cpu"))
    {
        let finding = Finding::new("cpu-torch", Severity::Error, &words::CPU_TORCH);
        found.push(
            finding
                .with("version", torch.version.clone())
                .with("count", count)
                .command("pip install --force-reinstall torch"),
        );
    }
    defects(python, circumstances.report, language, found);
    if let Some(engine) = python.package("deepspeed") {
        engine_findings(&engine.version, circumstances.report, language, found);
    }
}

type Required = (&'static str, Text, &'static str);

/// The packages a run imports, why, and how they are installed.
fn required(report: Option<&Report>) -> Vec<Required> {
    let front_end = report.map(|report| report.front_end);
    let reason = match report {
        Some(_) => Text::new("DeepSpeed reads the config.", "这份配置由 DeepSpeed 读取。"),
        None => Text::new(
            "Training with DeepSpeed imports this package.",
            "用 DeepSpeed 训练时要导入这个包。",
        ),
    };
    let mut required: Vec<Required> = vec![
        ("deepspeed", reason, "pip install deepspeed"),
        (
            "torch",
            Text::new("DeepSpeed runs on PyTorch.", "DeepSpeed 依赖 PyTorch。"),
            "pip install torch",
        ),
    ];
    if front_end == Some(FrontEnd::HfTrainer) {
        let reason = Text::new(
            "The config contains \"auto\", which the HF Trainer fills in.",
            "配置里有 \"auto\"，由 HF Trainer 填写。",
        );
        required.push(("transformers", reason, "pip install transformers"));
    }
    if matches!(front_end, Some(FrontEnd::HfTrainer | FrontEnd::Accelerate)) {
        let reason = Text::new(
            "The framework passes the config to DeepSpeed through accelerate.",
            "训练框架通过 accelerate 把配置交给 DeepSpeed。",
        );
        required.push(("accelerate", reason, "pip install accelerate"));
    }
    required
}

fn missing(python: &Python, package: &'static str, reason: Text, command: &'static str) -> Finding {
    Finding::new("no-package", Severity::Error, &words::NO_PACKAGE)
        .with("package", package)
        .with("python", python.path.display().to_string())
        .with("reason", reason)
        .command(command)
}

/// Known defects of the installed versions: those that a config meets, or all that one may meet.
fn defects(python: &Python, report: Option<&Report>, language: Language, found: &mut Vec<Finding>) {
    if let Some(report) = report {
        let own = report.diagnostics.iter().filter(|one| one.rule.code == ADVISORY_RULE);
        found.extend(own.map(|one| {
            Finding::new("known-defect", one.severity, &words::KNOWN_DEFECT)
                .with("message", one.message(language))
                .with("why", one.why(language))
                .with("help", one.help(language))
        }));
        return;
    }
    let packages = python.training_packages();
    let ids: Vec<String> = met_by(&packages).map(|(advisory, _)| advisory.id.clone()).collect();
    if let Some(first) = ids.first().cloned() {
        found.push(
            Finding::new("known-defects", Severity::Note, &words::KNOWN_DEFECTS)
                .with("count", ids.len())
                .with("first", first)
                .with("ids", Argument::Words(ids)),
        );
    }
}

fn engine_findings(
    version: &str,
    report: Option<&Report>,
    language: Language,
    found: &mut Vec<Finding>,
) {
    if let Ok(nearest) = EngineVersion::nearest(version).map(EngineVersion::name)
        && nearest != version.split('+').next().unwrap_or(version)
    {
        let finding = Finding::new("nearest-engine", Severity::Note, &words::NEAREST_ENGINE);
        found.push(finding.with("version", version).with("nearest", nearest));
    }
    let errors =
        |report: &&Report| report.diagnostics.iter().any(|found| found.severity == Severity::Error);
    if let Some(report) = report.filter(errors) {
        let first = report.diagnostics.iter().find(|found| found.severity == Severity::Error);
        let finding = Finding::new("config-refused", Severity::Error, &words::CONFIG_REFUSED)
            .with("version", version)
            .with("first", first.map(|first| first.message(language)).unwrap_or_default())
            .with("count", report.diagnostics.len());
        found.push(finding);
    }
}

fn builds(machine: &Machine, needs: &Needs, found: &mut Vec<Finding>) {
    if !needs.builds() {
        return;
    }
    let what = match needs {
        Needs { cpu_adam: true, async_io: false, .. } => Text::new("its CPU Adam", " CPU Adam"),
        Needs { async_io: true, .. } => Text::new("its asynchronous I/O module", "异步 I/O 模块"),
        _ => Text::new("its fused optimizer", "融合优化器"),
    };
    let tools = machine.tools;
    if !tools.cxx {
        let finding = Finding::new("no-compiler", Severity::Error, &words::NO_COMPILER);
        found.push(finding.with("what", what).command("sudo apt install build-essential"));
    }
    if !tools.ninja {
        let finding = Finding::new("no-ninja", Severity::Error, &words::NO_NINJA);
        found.push(finding.with("what", what).command("pip install ninja"));
    }
    if needs.async_io && !tools.libaio {
        let finding = Finding::new("no-libaio", Severity::Error, &words::NO_LIBAIO);
        found.push(finding.command("sudo apt install libaio-dev"));
    }
    if let Some(optimizer) = &needs.fused_optimizer
        && !tools.nvcc
    {
        let finding = Finding::new("no-nvcc", Severity::Error, &words::NO_NVCC);
        found.push(finding.with("optimizer", optimizer.clone()));
    }
}

fn gpus(machine: &Machine, found: &mut Vec<Finding>) {
    let gpus = match &machine.gpus {
        Ok(gpus) => gpus,
        Err(problem) => {
            let finding = Finding::new("no-driver", Severity::Warning, &words::NO_DRIVER);
            found.push(match problem {
                NoDriver::NoLibrary => finding.with(
                    "reason",
                    Text::new("the driver library is not installed", "没有安装驱动库"),
                ),
                NoDriver::Refuses(reason) => finding.with("reason", reason.clone()),
            });
            return;
        }
    };
    if gpus.is_empty() {
        found.push(Finding::new("no-gpu", Severity::Warning, &words::NO_GPU));
        return;
    }
    let seen = visible(gpus, machine.visible_devices.as_deref());
    let value = machine.visible_devices.clone().unwrap_or_default();
    let about = |finding: Finding| {
        finding.with("value", value.clone()).with("seen", seen.gpus.len()).with("count", gpus.len())
    };
    if let Some(entry) = &seen.unknown {
        let finding = Finding::new("unknown-gpu", Severity::Warning, &words::UNKNOWN_GPU);
        found.push(about(finding).with("entry", entry.clone()));
    } else if seen.gpus.len() < gpus.len() {
        found.push(about(Finding::new("hidden-gpus", Severity::Note, &words::HIDDEN_GPUS)));
    }
    if let Err(NotGpus::Different(names)) = equal_gpus(&seen.gpus) {
        let finding = Finding::new("different-gpus", Severity::Warning, &words::DIFFERENT_GPUS);
        found.push(finding.with("names", names.join(", ")));
    }
}

fn host(machine: &Machine, circumstances: &Circumstances<'_>, found: &mut Vec<Finding>) {
    if let (Some(have), Some((need, ranks))) = (machine.ram, circumstances.host_memory)
        && need > have
    {
        let finding = Finding::new("little-ram", Severity::Error, &words::LITTLE_RAM);
        let ranks = ranks.to_string();
        found.push(
            finding
                .with("have", have.to_string())
                .with("need", need.to_string())
                .with("ranks", ranks),
        );
    }
    if let (true, Limit::AtMost(limit)) = (circumstances.needs.async_io, machine.memlock) {
        let finding = Finding::new("memlock", Severity::Warning, &words::MEMLOCK);
        found.push(finding.with("limit", Bytes(limit).to_string()));
    }
    if let Some(shm) = machine.shm.filter(|shm| shm.total < LEAST_SHM) {
        let finding = Finding::new("small-shm", Severity::Warning, &words::SMALL_SHM);
        found.push(finding.with("size", shm.total.to_string()));
    }
    if let Limit::AtMost(limit) = machine.open_files
        && limit < LEAST_FILES
    {
        let finding = Finding::new("few-files", Severity::Note, &words::FEW_FILES);
        found.push(finding.with("limit", limit.to_string()).command("ulimit -n 65536"));
    }
}

fn disk_findings(disk: &Disk, found: &mut Vec<Finding>) {
    let path = |finding: Finding| finding.with("path", disk.path.clone());
    let problem = match &disk.place {
        Place::Missing => Text::new("does not exist", "不存在"),
        Place::NotADirectory => Text::new("is not a directory", "不是目录"),
        Place::NotWritable => Text::new("is not writable", "不可写"),
        Place::Ready { space, kind } => {
            if let Some((kind, reason)) = kind.as_deref().and_then(|kind| Some((kind, slow(kind)?)))
            {
                let finding = Finding::new("slow-disk", Severity::Warning, &words::SLOW_DISK);
                found.push(path(finding).with("kind", kind).with("reason", reason));
            }
            if let Some(space) = space.filter(|space| space.free < LEAST_DISK) {
                let finding = Finding::new("full-disk", Severity::Warning, &words::FULL_DISK);
                let parameters = format!("{:.1}e9", space.free.0 as f64 / 12e9);
                found.push(
                    path(finding)
                        .with("free", space.free.to_string())
                        .with("parameters", parameters),
                );
            }
            return;
        }
    };
    found.push(
        path(Finding::new("no-path", Severity::Error, &words::NO_PATH)).with("problem", problem),
    );
}

/// Why a file system is no place to swap to.
fn slow(kind: &str) -> Option<Text> {
    match kind {
        "tmpfs" | "ramfs" => Some(Text::new(
            "This file system is in host memory, so offloading to it saves no host memory.",
            "这个文件系统就在主机内存里，卸载到这里并不节省主机内存。",
        )),
        "nfs" | "nfs4" | "cifs" | "smb3" | "lustre" | "ceph" | "beegfs" | "gpfs" | "fuse.sshfs"
        | "9p" => Some(Text::new(
            "DeepSpeed reads and writes all optimizer states in every step. Over a network, this takes minutes.",
            "DeepSpeed 每一步都要读写全部优化器状态，通过网络读写要花几分钟。",
        )),
        "overlay" => Some(Text::new(
            "This is the container's own storage layer. It is slow, and its files are deleted with the container.",
            "这是容器自身的存储层，速度慢，容器删除后数据也会丢失。",
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
