//! A model: its tree of parameters and the numbers around it.

use std::collections::BTreeMap;
use std::sync::Arc;

use zeropilot_units::Elements;

use crate::architecture::{
    Count, Module, Modules, ParameterEntry, Parameters, Rewriter, TieGroup, rewrite,
};
use crate::config::TEXT_CONFIG;
use crate::dimensions::Dimensions;
use crate::dtype::Dtype;
use crate::family::Family;
use crate::likeness::{CountedFrom, StandInClass};
use crate::part::PartKind;
use crate::quantization::QuantizedBase;
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
    /// The model's structure is not known; a similar one stands in for it.
    Likeness {
        /// The `model_type` in the config; empty if the model is known by its sizes alone.
        of: String,
        /// What it is, as far as keys and tensor names tell.
        class: StandInClass,
        /// Where its parameters come from.
        counted: CountedFrom,
        /// Whether the whole also sees or hears, and only its language model is likened: the structure has no other part,
        /// and a count from the config is that of the language model alone.
        is_language_only: bool,
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
    pub(crate) language: Option<Family>,
    pub(crate) parts: Vec<(PartKind, String)>,
    pub(crate) names: Names,
    pub(crate) output: Option<String>,
    /// The module of the last parameter, if that is its weight.
    pub(crate) last: Option<String>,
    pub(crate) quantized_base: Option<QuantizedBase>,
    pub(crate) count: Count,
}

impl Model {
    /// Its family; `None` if it was read from file headers alone.
    pub fn family(&self) -> Option<Family> {
        self.family
    }

    /// The family of its language model, which is the model's own if it reads text alone; `None` if no family has
    /// such a language model.
    pub fn language_family(&self) -> Option<Family> {
        self.language
    }

    /// The smaller format that its config says its weights are stored in.
    pub fn quantized_base(&self) -> Option<&QuantizedBase> {
        self.quantized_base.as_ref()
    }

    /// The class of the whole model.
    pub fn class(&self) -> &str {
        &self.root.class
    }

    /// The tree of its modules.
    pub fn root(&self) -> &Module {
        &self.root
    }

    /// The dimensions of its language model; `None` if it was read from file headers alone.
    pub fn dimensions(&self) -> Option<&Dimensions> {
        self.dimensions.as_ref()
    }

    /// The values of its config; `None` if it was read from file headers alone.
    pub fn settings(&self) -> Option<&Settings> {
        self.settings.as_deref()
    }

    /// The values of its language model's config, which is the whole config if it reads text alone.
    pub fn language_settings(&self) -> Option<Settings> {
        let settings = self.settings()?;
        settings.section(TEXT_CONFIG).or_else(|| Some(settings.clone()))
    }

    /// The number format its config or its files name.
    pub fn dtype(&self) -> Option<Dtype> {
        self.dtype
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
        use Family::{Bert, ModernBert, Mt5, Roberta, T5, Whisper, XlmRoberta};
        let others = [Bert, ModernBert, Mt5, Roberta, T5, Whisper, XlmRoberta];
        !self.family.is_some_and(|family| others.contains(&family))
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
