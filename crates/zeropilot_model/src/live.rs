//! A model that somebody holds in memory: the parameters as `named_parameters` lists them.

use std::collections::BTreeSet;

use crate::architecture::{Module, Rewriter, TooManyElements, rewrite};
use crate::dtype::Dtype;
use crate::likeness::TensorNames;
use crate::model::{Model, Names, Weights};
use crate::safetensors::{StoredModel, StoredTensor};

/// A parameter of a model in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveParameter {
    /// Its name.
    pub name: String,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its number format, as PyTorch calls it; `None` if that is not known.
    pub dtype: Option<Dtype>,
    /// `requires_grad`.
    pub trainable: bool,
}

impl Model {
    /// The model with these parameters, in this order. A config of transformers adds what names and shapes do not tell;
    /// where its class has other parameters, those that are there count.
    ///
    /// # Errors
    ///
    /// If the elements cannot be counted.
    pub fn from_live(
        config: Option<&str>,
        parameters: &[LiveParameter],
    ) -> Result<Self, TooManyElements> {
        let stored = tensors(parameters)?;
        let names = TensorNames::of(&stored);
        let built = |weights| {
            config.and_then(|text| Self::from_config_and_names(text, &names, weights).ok())
        };
        let known = built(Weights::Checkpoint);
        for model in [known.clone(), built(Weights::Fresh)].into_iter().flatten() {
            if model.stand_in().is_none() && model.has_the_parameters(parameters) {
                return model.with_live_gradients(parameters);
            }
        }
        if let Some(similar) = known.as_ref().and_then(|known| known.with_tensors_of(&stored)) {
            return similar.with_live_gradients(parameters);
        }
        let mut live = stored.model()?.with_live_gradients(parameters)?;
        if let Some(known) = known {
            live.family = known.family;
            live.dimensions = known.dimensions;
            live.settings = known.settings;
            live.language = known.language;
            live.parts = known.parts;
            live.output = known.output;
            live.last = known.last;
            live.root.class = known.root.class;
        }
        live.names = Names::Real;
        Ok(live)
    }

    fn has_the_parameters(&self, live: &[LiveParameter]) -> bool {
        let mut own = self.parameters();
        live.iter().all(|live| {
            own.next().is_some_and(|own| own.name == live.name && own.parameter.shape == live.shape)
        }) && own.next().is_none()
    }

    fn with_live_gradients(&self, live: &[LiveParameter]) -> Result<Self, TooManyElements> {
        if live.iter().all(|parameter| parameter.trainable)
            && self.parameters().all(|entry| entry.parameter.trainable)
        {
            return Ok(self.clone());
        }
        let frozen = live.iter().filter(|live| !live.trainable).map(|live| live.name.as_str());
        let root = rewrite("", &self.root, &mut Frozen { names: frozen.collect() });
        let count = root.count()?;
        Ok(Self { root, count, ..self.clone() })
    }
}

fn tensors(parameters: &[LiveParameter]) -> Result<StoredModel, TooManyElements> {
    let tensor = |live: &LiveParameter| -> Result<StoredTensor, TooManyElements> {
        let elements =
            live.shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
        Ok(StoredTensor {
            name: live.name.clone(),
            dtype: live.dtype.unwrap_or(Dtype::F32),
            shape: live.shape.clone(),
            elements: elements.ok_or(TooManyElements)?,
        })
    };
    // The order of registration, not of names.
    Ok(StoredModel { tensors: parameters.iter().map(tensor).collect::<Result<_, _>>()? })
}

/// Takes the gradient from parameters by name.
struct Frozen<'a> {
    names: BTreeSet<&'a str>,
}

impl Rewriter for Frozen<'_> {
    fn minds_numbers(&self) -> bool {
        true
    }

    fn rewrite(&mut self, name: &str, mut module: Module) -> Module {
        for parameter in &mut module.parameters {
            let full = format!("{name}.{}", parameter.name);
            parameter.trainable = !self.names.contains(full.trim_start_matches('.'));
        }
        module
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str =
        r#"{"model_type": "gpt2", "n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16}"#;

    fn live(model: &Model) -> Vec<LiveParameter> {
        let parameter = |name: String, shape: &[u64]| LiveParameter {
            name,
            shape: shape.to_vec(),
            dtype: Some(Dtype::F32),
            trainable: true,
        };
        model.parameters().map(|entry| parameter(entry.name, &entry.parameter.shape)).collect()
    }

    #[test]
    fn a_model_with_the_parameters_of_its_class_is_that_of_its_config() {
        let model = Model::from_config(CONFIG).expect("a model");
        assert_eq!(Model::from_live(Some(CONFIG), &live(&model)), Ok(model));
    }

    #[test]
    fn what_is_frozen_stays_frozen() {
        let model = Model::from_config(CONFIG).expect("a model");
        let mut parameters = live(&model);
        parameters[0].trainable = false;
        let frozen = Model::from_live(Some(CONFIG), &parameters).expect("a model");
        let trained: Vec<String> = frozen.trainable().map(|entry| entry.name).collect();
        let expected: Vec<&str> = parameters[1..].iter().map(|it| it.name.as_str()).collect();
        assert_eq!(trained, expected);
        assert_eq!(frozen.family(), model.family());
    }

    #[test]
    fn other_parameters_than_those_of_the_class_count_in_their_own_order() {
        let model = Model::from_config(CONFIG).expect("a model");
        let mut parameters = live(&model);
        parameters.reverse();
        for config in [Some(CONFIG), None] {
            let live = Model::from_live(config, &parameters[1..]).expect("a model");
            let gone = parameters[0].shape.iter().product::<u64>();
            assert_eq!(live.elements().0, model.elements().0 - gone);
            assert_eq!(live.family().is_some(), config.is_some());
        }
    }
}
