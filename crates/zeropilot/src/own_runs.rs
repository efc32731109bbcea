//! The user's own runs on the device that is asked about: how far their predictions were off.

use zeropilot_ask::Machines;
use zeropilot_cluster::{Device, DeviceKind, Gpus, MachineProfile};

/// The name under which runs on processors are recorded.
pub(crate) const CPU: &str = "cpu";

/// The name under which runs on a device are recorded; none for one that is only an amount of memory.
pub(crate) fn device_name(device: Device, profile: Option<&MachineProfile>) -> Option<String> {
    if profile.is_some_and(|profile| profile.device.kind == DeviceKind::Cpu) {
        return Some(CPU.to_owned());
    }
    device.accelerator().map(|card| card.name.clone())
}

/// Machines with what was recorded of runs on such devices.
pub(crate) fn add(machines: Machines) -> Machines {
    let profile = machines.machine.as_deref();
    let asked = machines.gpus.as_deref().and_then(|text| text.parse::<Gpus>().ok());
    let device = asked.map(|gpus| gpus.device).or(profile.map(MachineProfile::device));
    let name = device.and_then(|device| device_name(device, profile));
    match name {
        Some(name) => Machines { own_runs: recorded(&name).into(), ..machines },
        None => machines,
    }
}

#[cfg(target_os = "linux")]
fn recorded(device: &str) -> Vec<zeropilot_cluster::OwnRun> {
    let all = zeropilot_run::accuracies(&crate::records::home());
    let counted = zeropilot_record::counted(&all, env!("CARGO_PKG_VERSION"));
    let here = counted.into_iter().filter(|run| run.job.device == device);
    let own = |run: &zeropilot_record::Accuracy| zeropilot_cluster::OwnRun {
        is_four_bit: run.job.method == "qlora",
        memory: run.memory(),
        step: run.step(),
    };
    here.map(own).collect()
}

/// Runs are recorded on Linux alone.
#[cfg(not(target_os = "linux"))]
fn recorded(_device: &str) -> Vec<zeropilot_cluster::OwnRun> {
    Vec::new()
}
