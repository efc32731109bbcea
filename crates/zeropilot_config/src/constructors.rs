//! What the optimizers and schedulers of each engine version take, as their constructors said.
//!
//! The engine hands `optimizer.params` and `scheduler.params` to a constructor as they stand. The
//! facts are in `knowledge/constructors`, extracted by `oracle/extract_constructors.py`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value as Json;

use crate::schema::EngineVersion;

/// The constructors of one engine version.
#[derive(Debug, Deserialize)]
pub struct Constructors {
    /// Optimizers the engine knows by name, in lower case.
    pub deepspeed_optimizers: Vec<String>,
    /// What it builds for some of them, by where the update runs.
    optimizers: BTreeMap<String, BTreeMap<Place, Parameters>>,
    /// `torch.optim`, whose names the engine takes as they are.
    torch_optimizers: BTreeMap<String, Parameters>,
    /// The engine's own schedulers.
    pub schedulers: BTreeMap<String, Parameters>,
    /// `torch.optim.lr_scheduler`, whose names the engine takes as they are.
    pub torch_schedulers: BTreeMap<String, Parameters>,
}

/// Which implementation of an optimizer is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// The fused kernel on the GPU.
    Gpu,
    /// The CPU implementation, where the optimizer is offloaded.
    Cpu,
    /// PyTorch's own, where `torch_adam` asks for it.
    Torch,
}

/// What a constructor takes.
#[derive(Debug, Deserialize)]
pub struct Parameters {
    /// Names without a default.
    pub required: Vec<String>,
    /// Names with their defaults.
    pub optional: BTreeMap<String, Json>,
}

impl Parameters {
    /// Whether it has a parameter of this name.
    pub fn takes(&self, name: &str) -> bool {
        self.required.iter().any(|known| known == name) || self.optional.contains_key(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.required.iter().chain(self.optional.keys()).map(String::as_str)
    }
}

impl Constructors {
    /// Those of an engine version.
    pub fn of(version: EngineVersion) -> &'static Self {
        static READ: OnceLock<BTreeMap<&'static str, Constructors>> = OnceLock::new();
        let all = READ.get_or_init(|| {
            TEXTS
                .iter()
                .map(|(version, text)| {
                    // The files are part of the program and a test reads them all.
                    let read = serde_json::from_str(text).unwrap_or_else(|error| {
                        panic!("knowledge/constructors/{version}.json: {error}")
                    });
                    (*version, read)
                })
                .collect()
        });
        &all[version.name()]
    }

    /// Whether the engine builds an optimizer of this name: its own in any case, PyTorch's as spelt.
    pub fn builds_optimizer(&self, name: &str) -> bool {
        self.knows_optimizer(name) || self.torch_optimizers.contains_key(name)
    }

    /// Whether the name is one of the engine's own.
    pub fn knows_optimizer(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.deepspeed_optimizers.contains(&name)
    }

    /// All names of optimizers, the engine's own first.
    pub fn optimizer_names(&self) -> impl Iterator<Item = &str> {
        let own = self.deepspeed_optimizers.iter();
        own.chain(self.torch_optimizers.keys()).map(String::as_str)
    }

    /// What the optimizer of this name takes, if that is known.
    pub fn optimizer(&self, name: &str, place: Place) -> Option<&Parameters> {
        if self.knows_optimizer(name) {
            return self.optimizers.get(&name.to_lowercase())?.get(&place);
        }
        self.torch_optimizers.get(name)
    }
}

macro_rules! texts {
    ($($version:literal),+ $(,)?) => {
        const TEXTS: &[(&str, &str)] = &[$((
            $version,
            const { zeropilot_knowledge::text(concat!("constructors/", $version, ".json")) },
        )),+];
    };
}

texts!("0.14.5", "0.15.4", "0.16.9", "0.17.6", "0.18.9", "0.19.8");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_version_has_its_constructors() {
        for version in EngineVersion::all() {
            let constructors = Constructors::of(version);
            assert!(constructors.knows_optimizer("AdamW"), "{version}");
            assert!(constructors.builds_optimizer("SGD") && !constructors.builds_optimizer("sgd"));
            assert!(constructors.schedulers.contains_key("WarmupLR"), "{version}");
            let adam = constructors.optimizer("Adam", Place::Gpu).expect("Adam is built");
            assert!(adam.takes("betas") && !adam.takes("max_grad_norm"), "{version}");
        }
    }
}
