//! A model: its tree of parameters and the numbers around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeropilot_units::Elements;

use crate::architecture::{
    Count, Module, Modules, ParameterEntry, Parameters, Rewriter, TieGroup, rewrite,
};
use crate::dimensions::Dimensions;
use crate::dtype::Dtype;
use crate::family::Family;
use crate::settings::Settings;

/// Where the weights come from, which decides what is tied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Weights {
    /// A checkpoint is loaded, as for fine-tuning: what it stores twice with different values is not tied.
    #[default]
    Checkpoint,
    /// The class alone decides, as for pre-training.
    ///
    /// It also does where a checkpoint is loaded into parameters that are partitioned while the model is
    /// built: they look equal when transformers 5.22 compares them, so it ties what the class ties, and
    /// the stored output is lost.
    Fresh,
}

/// How much of what the config describes the model covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// All of it.
    Whole,
    /// The text model of one that also sees or hears.
    TextPart {
        /// The `model_type` of the whole.
        of: String,
    },
}

/// Whether the names of the parameters are those of the real model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// They are those of the class in transformers.
    Real,
    /// The model's own code is not part of transformers; a class with the same shapes stands in for it.
    StandIn {
        /// The `model_type` in the config.
        of: String,
    },
    /// They were read from files, and may differ from those of the class that loads them.
    Stored,
}

/// A model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    pub(crate) family: Option<Family>,
    pub(crate) root: Module,
    pub(crate) dimensions: Option<Dimensions>,
    pub(crate) dtype: Option<Dtype>,
    pub(crate) settings: Option<Arc<Settings>>,
    pub(crate) coverage: Coverage,
    pub(crate) names: Names,
    pub(crate) output: Option<String>,
    pub(crate) count: Count,
}

impl Model {
    /// Its family; `None` if it was read from file headers alone.
    pub fn family(&self) -> Option<Family> {
        self.family
    }

    /// The class of the whole model.
    pub fn class(&self) -> &str {
        &self.root.class
    }

    /// The tree of its modules.
    pub fn root(&self) -> &Module {
        &self.root
    }

    /// Its dimensions; `None` if it was read from file headers alone.
    pub fn dimensions(&self) -> Option<&Dimensions> {
        self.dimensions.as_ref()
    }

    /// The values of its config; `None` if it was read from file headers alone.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_deref()
    }

    /// The number format its config or its files name.
    pub fn dtype(&self) -> Option<Dtype> {
        self.dtype
    }

    /// How much of the config it covers.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Whose names the parameters have.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Its modules in the order of `named_modules`, those without any parameter left out.
    pub fn modules(&self) -> Modules<'_> {
        self.root.modules()
    }

    /// Its parameters in the order of `named_parameters`, tied ones once.
    pub fn parameters(&self) -> Parameters<'_> {
        self.root.all_parameters()
    }

    /// Those of its parameters that require a gradient.
    pub fn trainable(&self) -> impl Iterator<Item = ParameterEntry<'_>> {
        self.parameters().filter(|entry| entry.parameter.trainable)
    }

    /// Whether it predicts the next token of the one sequence it reads.
    pub fn is_decoder_only(&self) -> bool {
        use Family::{Bert, ModernBert, Mt5, Roberta, T5, Whisper};
        !matches!(self.family, Some(Bert | ModernBert | Mt5 | Roberta | T5 | Whisper))
    }

    /// How many elements there are.
    pub fn count(&self) -> &Count {
        &self.count
    }

    /// Elements of all parameters, tied ones once.
    pub fn elements(&self) -> Elements {
        self.count.total
    }

    /// Names under which one parameter is held more than once: the listed one, then the others.
    pub fn ties(&self) -> Vec<Vec<String>> {
        let mut groups: BTreeMap<TieGroup, Vec<String>> = BTreeMap::new();
        for entry in self.root.all_names() {
            if let Some(group) = entry.parameter.tie {
                groups.entry(group).or_default().push(entry.name);
            }
        }
        groups.into_values().filter(|names| names.len() > 1).collect()
    }

    /// Whether the matrix that gives the logits is also held elsewhere.
    pub fn has_tied_output(&self) -> bool {
        let Some(output) = &self.output else { return false };
        let weight = format!("{output}.weight");
        self.ties().iter().any(|names| names.contains(&weight))
    }

    /// The model with every parameter frozen whose name contains one of these fragments.
    #[must_use]
    pub fn freeze(&self, fragments: &[&str]) -> Self {
        self.with_gradients(fragments, |trainable, named| trainable && !named)
    }

    /// The model with only those parameters trained whose name contains one of these fragments.
    #[must_use]
    pub fn train_only(&self, fragments: &[&str]) -> Self {
        self.with_gradients(fragments, |trainable, named| trainable && named)
    }

    /// The model with nothing trained, such as a teacher.
    #[must_use]
    pub fn frozen(&self) -> Self {
        self.train_only(&[])
    }

    fn with_gradients(&self, fragments: &[&str], trainable: fn(bool, bool) -> bool) -> Self {
        let root = rewrite("", &self.root, &mut Gradients { fragments, trainable });
        // Freezing adds no element, so a sum that fitted fits again.
        let count = root.count().unwrap_or(self.count);
        Self { root, count, ..self.clone() }
    }
}

/// Decides by name whether a parameter requires a gradient.
struct Gradients<'a> {
    fragments: &'a [&'a str],
    trainable: fn(bool, bool) -> bool,
}

impl Rewriter for Gradients<'_> {
    fn minds_numbers(&self) -> bool {
        let numeric = |c: char| c.is_ascii_digit() || c == '*';
        self.fragments.iter().any(|fragment| fragment.contains(numeric))
    }

    fn rewrite(&mut self, name: &str, mut module: Module) -> Module {
        for parameter in &mut module.parameters {
            let full = format!("{name}.{}", parameter.name);
            let full = full.trim_start_matches('.');
            let named = self.fragments.iter().any(|fragment| full.contains(fragment));
            parameter.trainable = (self.trainable)(parameter.trainable, named);
        }
        module
    }
}
