//! The modules PEFT puts around those of the model.

use crate::architecture::{Module, ModuleKind, TieGroup};
use crate::family::parts::{Bias, linear};

use super::{Lora, LoraError, TrainedBiases};

/// The name PEFT gives an adapter if none is given.
const ADAPTER: &str = "default";

fn dictionary(module: Module) -> Module {
    Module::new("ModuleDict").with(ADAPTER, module)
}

fn parameter_dictionary(shape: [u64; 2]) -> Module {
    Module::new("ParameterDict").parameter(ADAPTER, shape)
}

/// With the two matrices of an adapter.
fn with_pair(wrapper: Module, inputs: u64, outputs: u64, rank: u64) -> Module {
    wrapper
        .with("lora_A", dictionary(linear(inputs, rank, Bias::No)))
        .with("lora_B", dictionary(linear(rank, outputs, Bias::No)))
}

fn with_magnitude(wrapper: Module, class: String, shape: &[u64], lora: &Lora) -> Module {
    let magnitude = || dictionary(Module::new(class).parameter("weight", shape));
    wrapper.with_some("lora_magnitude_vector", lora.dora.then(magnitude))
}

fn base(module: &Module, lora: &Lora) -> Module {
    let mut base = module.clone();
    for parameter in &mut base.parameters {
        parameter.trainable |= lora.bias == TrainedBiases::LoraOnly && parameter.name == "bias";
    }
    base
}

/// A module with an adapter.
pub(super) fn module(name: &str, module: &Module, lora: &Lora) -> Result<Module, LoraError> {
    let not_adaptable =
        || LoraError::NotAdaptable { name: name.to_owned(), class: module.class.to_string() };
    let (inputs, outputs) = module.features().ok_or_else(not_adaptable)?;
    let rank = lora.rank;
    let wrap = |class: &str| Module::new(class.to_owned()).with("base_layer", base(module, lora));
    match module.kind {
        ModuleKind::Linear | ModuleKind::TransposedLinear => {
            let wrapper = with_pair(wrap("Linear"), inputs, outputs, rank);
            Ok(with_magnitude(wrapper, "DoraLinearLayer".to_owned(), &[outputs], lora))
        }
        ModuleKind::Embedding => {
            let wrapper = wrap("Embedding")
                .with("lora_embedding_A", parameter_dictionary([rank, inputs]))
                .with("lora_embedding_B", parameter_dictionary([outputs, rank]));
            Ok(with_magnitude(wrapper, "DoraEmbeddingLayer".to_owned(), &[outputs], lora))
        }
        ModuleKind::Convolution => {
            let kernel = module.weight().and_then(|shape| shape.get(2..)).unwrap_or_default();
            let (wrapper, sides) = (wrap(&module.class), kernel.len());
            let convolution = |outputs: u64, inputs: u64, kernel: &[u64]| {
                let shape: Vec<u64> = [&[outputs, inputs], kernel].concat();
                let class = module.class.clone();
                dictionary(
                    Module::of_kind(class, ModuleKind::Convolution).parameter("weight", shape),
                )
            };
            let wrapper = wrapper
                .with("lora_A", convolution(rank, inputs, kernel))
                .with("lora_B", convolution(outputs, rank, &vec![1; sides]));
            let magnitude: Vec<u64> = [&[1, outputs][..], &vec![1; sides]].concat();
            Ok(with_magnitude(wrapper, format!("Dora{}Layer", module.class), &magnitude, lora))
        }
        _ => Err(not_adaptable()),
    }
}

/// A module some of whose own tensors have adapters: one wrapper around another, the last outermost.
pub(super) fn parameters(
    name: &str,
    module: &Module,
    ranks: &[(usize, u64)],
    lora: &Lora,
) -> Result<Module, LoraError> {
    if lora.dropout || lora.dora {
        return Err(LoraError::OnParameters);
    }
    let transposed = matches!(module.kind, ModuleKind::Experts { transposed: true, .. });
    let not_adaptable =
        || LoraError::NotAdaptable { name: name.to_owned(), class: module.class.to_string() };
    let mut wrapped = base(module, lora);
    for (index, rank) in ranks {
        let shape = module.parameters.get(*index).map(|parameter| parameter.shape.as_slice());
        let (experts, inputs, outputs) = match shape {
            Some([experts, inputs, outputs]) if transposed => (*experts, *inputs, *outputs),
            Some([experts, outputs, inputs]) => (*experts, *inputs, *outputs),
            Some([outputs, inputs]) => (1, *inputs, *outputs),
            _ => return Err(not_adaptable()),
        };
        let wrapper = Module::new(PARAMETER_WRAPPER).with("base_layer", wrapped);
        wrapped = with_pair(wrapper, inputs, outputs, rank * experts);
    }
    Ok(wrapped)
}

/// The class of a wrapper around a module one of whose own tensors has an adapter.
const PARAMETER_WRAPPER: &str = "ParamWrapper";

impl Module {
    /// Whether PEFT put it around a module to adapt one of that module's own tensors.
    pub fn is_parameter_wrapper(&self) -> bool {
        self.class == PARAMETER_WRAPPER
    }

    /// The tensor it adapts, with the elements of the factor for inputs and of the one for outputs.
    pub fn wrapped_parameter(&self) -> Option<(&str, (u64, u64))> {
        let factor = |name: &str| self.child(name)?.child(ADAPTER)?.weight();
        let (Some([_, inputs]), Some([outputs, ranks])) = (factor("lora_A"), factor("lora_B"))
        else {
            return None;
        };
        let mut base = self.child("base_layer")?;
        while base.is_parameter_wrapper() {
            base = base.child("base_layer")?;
        }
        let is_adapted = |shape: &[u64]| {
            let matrix = &shape[shape.len().saturating_sub(2)..];
            matrix == [*outputs, *inputs] || matrix == [*inputs, *outputs]
        };
        let parameter = base.parameters.iter().find(|it| is_adapted(&it.shape))?;
        Some((&parameter.name, (inputs * ranks, ranks * outputs)))
    }
}

/// The class of a module to save.
const SAVED: &str = "ModulesToSaveWrapper";

pub(super) fn is_saved(module: &Module) -> bool {
    module.class == SAVED
}

/// A module to save: the frozen original and a trained copy. The copy is tied to nothing outside itself; parameters
/// that share one storage inside it still do.
pub(super) fn saved(module: &Module) -> Module {
    let original = module.map_parameters(&|parameter| parameter.trainable = false);
    let mut groups = Vec::new();
    tie_groups(module, &mut groups);
    let copy = module.map_parameters(&|parameter| {
        parameter.trainable = true;
        let members = groups.iter().filter(|group| parameter.tie == Some(**group)).count();
        parameter.tie = parameter.tie.filter(|_| members > 1).map(TieGroup::of_copy);
    });
    Module::new(SAVED).with("original_module", original).with("modules_to_save", dictionary(copy))
}

/// The tie group of every tied parameter in and below a module, once per parameter.
fn tie_groups(module: &Module, groups: &mut Vec<TieGroup>) {
    groups.extend(module.parameters.iter().filter_map(|parameter| parameter.tie));
    for child in &module.children {
        tie_groups(&child.module, groups);
    }
}
