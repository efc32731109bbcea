//! The GPUs a user means by `--gpus`; without it, those of this machine.

use zeropilot_ask::Machines;
use zeropilot_cluster::discovery::{Driver, equal_gpus, visible};
use zeropilot_cluster::{Device, Gpus, Nvidia};
use zeropilot_text::Language;
use zeropilot_view::gpus;

use crate::options::MachineOption;
use crate::{machine_file, own_runs};

/// Machines with what was measured on them. A profile that is named says which GPUs it is of.
pub(crate) fn measured(
    machines: Machines,
    profile: &MachineOption,
    language: Language,
) -> Result<Machines, String> {
    let named = profile.machine.as_deref();
    let machines = if named.is_some() { machines } else { or_here(machines, language)? };
    Ok(own_runs::add(machine_file::add(machines, named, language)?))
}

/// So many GPUs of the kind that the driver finds here; only their number if it finds none, or several kinds.
#[cfg(target_os = "linux")]
pub(crate) fn of_kind_here(count: u64) -> String {
    match visible_here(Language::English) {
        Ok(gpus) => named(gpus.device, count),
        Err(_) => count.to_string(),
    }
}

/// Machines with the GPUs that the driver finds here, if the user names none.
pub(crate) fn or_here(machines: Machines, language: Language) -> Result<Machines, String> {
    if machines.gpus.is_some() {
        return Ok(machines);
    }
    let gpus = written(&visible_here(language)?);
    Ok(Machines { gpus: Some(gpus), ..machines })
}

fn visible_here(language: Language) -> Result<Gpus, String> {
    let shown = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    here(&Nvidia, shown.as_deref(), language)
}

fn written(gpus: &Gpus) -> String {
    named(gpus.device, gpus.world_size())
}

fn named(device: Device, count: u64) -> String {
    match device {
        Device::Accelerator(card) => format!("{count}x{}", card.name),
        Device::Memory(stated) => format!("{count}x{stated}"),
        Device::Unknown => count.to_string(),
    }
}

/// The GPUs of this machine that a program started here would see.
fn here(driver: &dyn Driver, shown: Option<&str>, language: Language) -> Result<Gpus, String> {
    let found = driver.gpus().map_err(|problem| gpus::no_driver(&problem, language))?;
    let seen = visible(&found, shown).gpus;
    equal_gpus(&seen).map_err(|problem| gpus::not_gpus(&problem, language))
}

#[cfg(test)]
mod tests {
    use zeropilot_cluster::discovery::{FoundGpu, NoDriver};
    use zeropilot_units::Bytes;

    use super::*;

    struct Recorded(Result<Vec<FoundGpu>, NoDriver>);

    impl Driver for Recorded {
        fn gpus(&self) -> Result<Vec<FoundGpu>, NoDriver> {
            self.0.clone()
        }
    }

    /// `nvidia-smi` of a machine with A100s: 81920 MiB each.
    fn a100s(count: usize) -> Recorded {
        let memory = Bytes(81920 << 20);
        let one = |index| FoundGpu {
            name: "NVIDIA A100-SXM4-80GB".to_owned(),
            uuid: format!("GPU-{index}"),
            memory,
            free: memory,
        };
        Recorded(Ok((0..count).map(one).collect()))
    }

    #[test]
    fn without_a_text_the_driver_is_asked() {
        let gpus = here(&a100s(8), None, Language::English).expect("GPUs");
        assert_eq!(gpus.world_size(), 8);
        let read: Gpus = written(&gpus).parse().expect("what is written can be read");
        assert_eq!((read.device, read.world_size()), (gpus.device, 8));
        let shown = here(&a100s(8), Some("0,1"), Language::English).expect("GPUs");
        assert_eq!(shown.world_size(), 2);
    }

    #[test]
    fn no_driver_and_no_gpu_say_what_to_do() {
        let missing = here(&Recorded(Err(NoDriver::NoLibrary)), None, Language::English);
        assert!(missing.expect_err("none").contains("--gpus"));
        let hidden = here(&a100s(2), Some(""), Language::Chinese);
        assert!(hidden.expect_err("none").contains("--gpus"));
    }
}
