//! From the targets a person names to the modules and tensors PEFT adapts.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::{Module, ModuleKind};
use crate::config::{ExpertNames, FamilyFacts};
use crate::family::Family;
use crate::model::Model;
use crate::part::{PartKind, is_in};

use super::{Lora, LoraError, Targets, Task, has_number};

/// What gets adapters.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    modules: Modules,
    /// Ends of the names of tensors.
    parameters: Vec<String>,
    /// Tensors that hold several modules of old, and how many: their rank is as many times higher.
    fused: BTreeMap<String, u64>,
    /// Parts without adapters.
    without: Vec<PartKind>,
    /// Where the parts of the model are.
    paths: Vec<(PartKind, String)>,
}

#[derive(Debug)]
enum Modules {
    AllLinear { except: Option<String> },
    Names(Vec<String>),
}

impl Default for Modules {
    fn default() -> Self {
        Self::Names(Vec::new())
    }
}

impl Resolved {
    pub(super) fn new(
        lora: &Lora,
        model: &Model,
        family: Family,
        facts: &FamilyFacts,
        experts: Option<&ExpertNames>,
    ) -> Result<Self, LoraError> {
        let all = Self::everywhere(lora, model, family, facts, experts)?;
        Ok(Self { without: lora.without.clone(), paths: model.parts.clone(), ..all })
    }

    fn everywhere(
        lora: &Lora,
        model: &Model,
        family: Family,
        facts: &FamilyFacts,
        experts: Option<&ExpertNames>,
    ) -> Result<Self, LoraError> {
        let model_type = family.model_type();
        let parameters = lora.target_parameters.clone();
        let Some(experts) = experts else {
            let modules = match &lora.targets {
                Targets::AllLinear => Modules::AllLinear { except: left_out(lora, model) },
                Targets::Names(names) => Modules::Names(names.clone()),
                Targets::FamilyDefault => match &facts.lora_targets {
                    Some(names) => Modules::Names(names.clone()),
                    None if !parameters.is_empty() => Modules::Names(Vec::new()),
                    None => return Err(LoraError::NoDefaultTargets { model_type }),
                },
            };
            return Ok(Self { modules, parameters, ..Self::default() });
        };
        let names: BTreeSet<String> = match &lora.targets {
            Targets::Names(names) => names.iter().cloned().collect(),
            Targets::AllLinear => {
                let except = left_out(lora, model);
                let old = experts.names.keys().cloned();
                linear_names(model, except.as_deref()).into_iter().chain(old).collect()
            }
            Targets::FamilyDefault if parameters.is_empty() => {
                return Err(LoraError::MixtureNeedsTargets { model_type });
            }
            Targets::FamilyDefault => BTreeSet::new(),
        };
        Self::translated(names, parameters, experts)
    }

    /// Old names of expert parts become tensors; the others stay modules.
    fn translated(
        names: BTreeSet<String>,
        mut parameters: Vec<String>,
        experts: &ExpertNames,
    ) -> Result<Self, LoraError> {
        let mut modules = Vec::new();
        let mut found: BTreeSet<&str> = BTreeSet::new();
        for name in names {
            let last = name.rsplit('.').next().unwrap_or_default();
            match experts.names.get_key_value(last) {
                Some((old, new)) => {
                    found.insert(old);
                    parameters.push(new.clone());
                }
                None => modules.push(name),
            }
        }
        let mut fused = BTreeMap::new();
        for (parameter, parts) in &experts.fused {
            let missing: Vec<String> =
                parts.iter().filter(|part| !found.contains(part.as_str())).cloned().collect();
            if missing.is_empty() {
                fused.insert(parameter.clone(), parts.len() as u64);
            } else if missing.len() < parts.len() {
                return Err(LoraError::PartOfFused { parameter: parameter.clone(), missing });
            }
        }
        Ok(Self { modules: Modules::Names(modules), parameters, fused, ..Self::default() })
    }

    pub(super) fn mind_numbers(&self) -> bool {
        let modules = match &self.modules {
            Modules::AllLinear { .. } => false,
            Modules::Names(names) => has_number(names),
        };
        modules || has_number(&self.parameters)
    }

    fn leave_out(&self, name: &str) -> bool {
        self.without.iter().any(|part| is_in(name, *part, &self.paths))
    }

    pub(super) fn include_module(&self, name: &str, module: &Module) -> bool {
        if self.leave_out(name) {
            return false;
        }
        match &self.modules {
            Modules::Names(names) => names.iter().any(|target| ends_with_part(name, target)),
            Modules::AllLinear { except } => is_linear(module) && except.as_deref() != Some(name),
        }
    }

    /// The module's own tensors that get adapters, in their order, with the rank of each.
    pub(super) fn parameter_ranks(
        &self,
        name: &str,
        module: &Module,
        rank: u64,
    ) -> Vec<(usize, u64)> {
        let mut ranks = Vec::new();
        if self.leave_out(name) {
            return ranks;
        }
        for (index, parameter) in module.parameters.iter().enumerate() {
            let full = format!("{name}.{}", parameter.name);
            if self.parameters.iter().any(|target| ends_with_part(&full, target)) {
                let times = self.fused.get(&*parameter.name).copied().unwrap_or(1);
                ranks.push((index, rank * times));
            }
        }
        ranks
    }
}

fn is_linear(module: &Module) -> bool {
    matches!(module.kind, ModuleKind::Linear | ModuleKind::TransposedLinear)
}

/// The whole name, or a part of it after a dot.
fn ends_with_part(name: &str, end: &str) -> bool {
    name.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// The module that `all-linear` leaves out: the output, or else the classifier of a classification task.
fn left_out(lora: &Lora, model: &Model) -> Option<String> {
    let classifier = || {
        let heads = ["score", "classifier"].into_iter();
        let mut heads = heads.filter(|_| lora.task == Task::SequenceClassification);
        heads.find(|head| model.root().child(head).is_some()).map(str::to_owned)
    };
    model.output.clone().or_else(classifier)
}

/// The last parts of the names of linear modules.
fn linear_names(model: &Model, except: Option<&str>) -> Vec<String> {
    let linear = model.modules().filter(|entry| is_linear(entry.module));
    let kept = linear.filter(|entry| except != Some(entry.name.as_str()));
    kept.filter_map(|entry| entry.name.rsplit('.').next().map(str::to_owned)).collect()
}
