//! The profile that `calibrate` wrote: named by `--machine`, or found where it is usually written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use zeropilot_ask::Machines;
#[cfg(target_os = "linux")]
use zeropilot_cluster::DeviceKind;
use zeropilot_cluster::{Gpus, MachineProfile};
use zeropilot_text::Language;
use zeropilot_view::{calibrate, talk};

/// Where the profile of this machine is written; nothing if there is no home.
pub(crate) fn usual() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let configs = own.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")))?;
    Some(configs.join("zeropilot").join("machine.json"))
}

/// Machines with the profile that is named. Without a name, that of this machine serves a question about its GPUs.
pub(crate) fn add(
    mut machines: Machines,
    named: Option<&Path>,
    language: Language,
) -> Result<Machines, String> {
    if let Some(path) = named {
        machines.machine = Some(Arc::new(read(path, language)?));
        return Ok(machines);
    }
    let Some(profile) = of_this_machine(language)? else { return Ok(machines) };
    let asked = machines.gpus.as_deref().and_then(|text| text.parse::<Gpus>().ok());
    let is_of_them =
        |gpus: Gpus| gpus.device == profile.device() && gpus.device.accelerator().is_some();
    if asked.is_some_and(is_of_them) {
        machines.machine = Some(Arc::new(profile));
    }
    Ok(machines)
}

/// Machines with the profile of this machine's processors, for ranks that compute on them.
#[cfg(target_os = "linux")]
pub(crate) fn add_processors(
    mut machines: Machines,
    language: Language,
) -> Result<Machines, String> {
    let profile = of_this_machine(language)?;
    let of_processors = profile.filter(|profile| profile.device.kind == DeviceKind::Cpu);
    machines.machine = of_processors.map(Arc::new);
    Ok(machines)
}

/// The profile that was written where it is usually.
fn of_this_machine(language: Language) -> Result<Option<MachineProfile>, String> {
    let path = usual().filter(|path| path.is_file());
    path.map(|path| read(&path, language)).transpose()
}

fn read(path: &Path, language: Language) -> Result<MachineProfile, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| talk::cannot_read(path, error, language))?;
    MachineProfile::parse(&text).map_err(|error| calibrate::bad_profile(path, &error, language))
}
