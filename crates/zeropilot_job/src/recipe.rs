//! What training frameworks call the values of a job, and what they use where a job says nothing. The facts are
//! `knowledge/recipes`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::framework::Framework;
use crate::name::TaskName;
use crate::training_job::Direction;

impl Framework {
    /// Its default for a value, and the release whose default that is.
    pub(crate) fn default(self, field: &str) -> Option<(&'static str, &'static str)> {
        let recipe = self.recipe()?;
        Some((recipe.defaults.get(field)?.as_str(), recipe.version.as_str()))
    }

    /// Its default for a value of a task, and the release whose default that is.
    pub(crate) fn default_of_task(
        self,
        task: TaskName,
        field: &str,
    ) -> Option<(&'static str, &'static str)> {
        let recipe = self.recipe()?;
        Some((recipe.tasks.get(task.name())?.get(field)?.as_str(), recipe.version.as_str()))
    }

    /// The release that was read.
    pub(crate) fn version(self) -> Option<&'static str> {
        self.recipe().map(|recipe| recipe.version.as_str())
    }

    /// The release of TRL that it is built on.
    pub(crate) fn trl(self) -> Option<&'static str> {
        self.recipe()?.trl.as_deref()
    }

    fn recipe(self) -> Option<&'static Recipe> {
        RECIPES.iter().find(|recipe| recipe.framework == self)
    }
}

/// What a release of a framework does by itself.
#[derive(Debug, Deserialize)]
struct Recipe {
    framework: Framework,
    version: String,
    defaults: BTreeMap<String, String>,
    /// What differs by task.
    #[serde(default)]
    tasks: BTreeMap<String, BTreeMap<String, String>>,
    /// The release of TRL that it is built on.
    trl: Option<String>,
}

/// An argument that changes memory or time and that no prediction follows.
#[derive(Debug, Deserialize)]
pub(crate) struct NotModelled {
    pub(crate) names: Vec<String>,
    /// Values with which it changes nothing.
    unless: Vec<String>,
    pub(crate) direction: Direction,
    pub(crate) en: String,
    pub(crate) zh: String,
}

impl NotModelled {
    pub(crate) fn is_active(&self, value: &str) -> bool {
        !self.unless.iter().any(|idle| idle.eq_ignore_ascii_case(value))
    }
}

#[derive(Debug, Deserialize)]
pub(crate) struct Arguments {
    names: BTreeMap<String, Vec<String>>,
    pub(crate) not_modelled: Vec<NotModelled>,
}

impl Arguments {
    /// Under which names frameworks read a value.
    pub(crate) fn names(&self, field: &str) -> impl Iterator<Item = &str> {
        self.names.get(field).into_iter().flatten().map(String::as_str)
    }
}

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("recipes/frameworks.json") };
    serde_json::from_str(text).expect("knowledge/recipes/frameworks.json is read by a test")
});

pub(crate) static ARGUMENTS: LazyLock<Arguments> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("recipes/arguments.json") };
    serde_json::from_str(text).expect("knowledge/recipes/arguments.json is read by a test")
});

/// The config behind a name that ms-swift takes for `--deepspeed`.
pub(crate) fn swift_preset(name: &str) -> Option<&'static str> {
    Some(match name {
        "zero0" => const { zeropilot_knowledge::text("recipes/ms-swift/zero0.json") },
        "zero1" => const { zeropilot_knowledge::text("recipes/ms-swift/zero1.json") },
        "zero2" => const { zeropilot_knowledge::text("recipes/ms-swift/zero2.json") },
        "zero2_offload" => {
            const { zeropilot_knowledge::text("recipes/ms-swift/zero2_offload.json") }
        }
        "zero3" => const { zeropilot_knowledge::text("recipes/ms-swift/zero3.json") },
        "zero3_offload" => {
            const { zeropilot_knowledge::text("recipes/ms-swift/zero3_offload.json") }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_framework_has_its_row_and_every_default_a_name() {
        for framework in [
            Framework::HfTrainer,
            Framework::Accelerate,
            Framework::Trl,
            Framework::LlamaFactory,
            Framework::Axolotl,
            Framework::Swift,
        ] {
            assert!(RECIPES.iter().any(|recipe| recipe.framework == framework), "{framework:?}");
        }
        for recipe in RECIPES.iter() {
            for field in recipe.defaults.keys().filter(|field| *field != "stage") {
                assert!(ARGUMENTS.names(field).next().is_some(), "{field}");
            }
            for field in recipe.tasks.values().flat_map(BTreeMap::keys) {
                assert!(ARGUMENTS.names(field).next().is_some(), "{field}");
            }
        }
    }

    #[test]
    fn an_argument_means_one_thing() {
        let mut seen = BTreeMap::new();
        for (field, names) in &ARGUMENTS.names {
            for name in names {
                assert_eq!(seen.insert(name, field), None, "{name}");
            }
        }
    }
}
