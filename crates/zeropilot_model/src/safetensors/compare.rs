//! What a checkpoint holds against what the class builds.

use std::collections::{BTreeMap, BTreeSet};

use zeropilot_units::Elements;

use crate::model::Model;

use super::stored::StoredModel;

/// One difference between the files and the class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The files hold a second copy of a tied parameter.
    StoredTwice {
        /// The name of the copy.
        name: String,
        /// Its elements.
        elements: Elements,
    },
    /// Only the files have it: a layer the class leaves out, a scale, a buffer, or another spelling.
    OnlyStored {
        /// Its name.
        name: String,
        /// Its elements.
        elements: Elements,
    },
    /// Only the class has it: it is made anew when the files are loaded, or spelt differently in them.
    OnlyBuilt {
        /// Its name.
        name: String,
        /// Its elements.
        elements: Elements,
    },
    /// Both have it, with different shapes.
    Shape {
        /// Its name.
        name: String,
        /// In the files.
        stored: Vec<u64>,
        /// In the class.
        built: Vec<u64>,
    },
}

/// The comparison of a config with the headers beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Elements in the files.
    pub stored: Elements,
    /// Elements of the class, tied ones once.
    pub built: Elements,
    /// What differs, by name. Files may spell names as an older transformers did, or hold experts one by
    /// one: then many differ, and the totals say whether the model is the same.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// Elements that the files hold beyond the class, second copies of tied ones left out.
    pub fn surplus(&self) -> i128 {
        let twice: u64 = self
            .differences
            .iter()
            .map(|difference| match difference {
                Difference::StoredTwice { elements, .. } => elements.0,
                _ => 0,
            })
            .sum();
        i128::from(self.stored.0) - i128::from(self.built.0) - i128::from(twice)
    }
}

/// Compares the tensors of a checkpoint with the parameters of a class.
pub fn compare(stored: &StoredModel, model: &Model) -> Comparison {
    let mut tensors: BTreeMap<&str, _> =
        stored.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
    let ties = model.ties();
    let mut differences = Vec::new();
    for entry in model.parameters() {
        let aliases = ties.iter().find(|names| names.first() == Some(&entry.name));
        let names = [entry.name.as_str()]
            .into_iter()
            .chain(aliases.into_iter().flatten().skip(1).map(String::as_str));
        let mut found = names.filter_map(|name| tensors.remove(name));
        let built = entry.parameter.shape.clone();
        match found.next() {
            None => differences.push(Difference::OnlyBuilt {
                elements: Elements(entry.parameter.elements().unwrap_or(u64::MAX)),
                name: entry.name.clone(),
            }),
            Some(tensor) if tensor.shape != built => {
                let stored = tensor.shape.clone();
                differences.push(Difference::Shape { name: entry.name.clone(), stored, built });
            }
            Some(_) => {}
        }
        differences.extend(found.map(|copy| Difference::StoredTwice {
            name: copy.name.clone(),
            elements: Elements(copy.elements),
        }));
    }
    let left: BTreeSet<&str> = tensors.keys().copied().collect();
    let only_stored = stored.tensors.iter().filter(|tensor| left.contains(tensor.name.as_str()));
    differences.extend(only_stored.map(|tensor| Difference::OnlyStored {
        name: tensor.name.clone(),
        elements: Elements(tensor.elements),
    }));
    Comparison { stored: stored.elements(), built: model.elements(), differences }
}
