//! What a family is given, and what it gives back.

use std::borrow::Cow;

use crate::architecture::{Module, TieGroup};
use crate::config::{ConfigError, FamilyFacts, Reader};
use crate::dimensions::Dimensions;
use crate::family::parts::{Bias, linear};
use crate::model::Weights;

/// How a family builds its tree.
pub(crate) type Builder = fn(&Context<'_>) -> Result<Blueprint, ConfigError>;

/// What stands on top of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    LanguageModel,
    Classifier,
}

/// What a family builds from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) facts: &'static FamilyFacts,
    pub(crate) head: Head,
    pub(crate) weights: Weights,
}

/// A finished tree.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) root: Module,
    pub(crate) dimensions: Dimensions,
    /// The module that gives the logits, if it is the model's output embedding.
    pub(crate) output: Option<&'static str>,
}

/// The group of the embedding and the output matrix.
pub(super) const EMBEDDING: TieGroup = TieGroup(0);

impl Context<'_> {
    /// The group of the embedding, if the config ties the output to it.
    pub(super) fn embedding_tie(&self) -> Result<Option<TieGroup>, ConfigError> {
        let tied = self.reader.flag("tie_word_embeddings")?;
        Ok((tied && self.head == Head::LanguageModel).then_some(EMBEDDING))
    }

    /// The class of the whole model.
    pub(super) fn class(&self) -> Cow<'static, str> {
        let classifier = self.facts.classifier_class.as_deref();
        match self.head {
            Head::Classifier => Cow::Borrowed(classifier.unwrap_or_default()),
            Head::LanguageModel => Cow::Borrowed(self.facts.language_model_class.as_str()),
        }
    }

    /// A base model under `base` with `lm_head` or `score` beside it.
    pub(super) fn with_head(
        &self,
        base: &'static str,
        model: Module,
        dimensions: Dimensions,
        bias: Bias,
    ) -> Result<Blueprint, ConfigError> {
        let root = Module::new(self.class()).with(base, model);
        let Dimensions { hidden_size, vocab_size, .. } = dimensions;
        let root = match self.head {
            Head::LanguageModel => {
                let head = linear(hidden_size, vocab_size, bias);
                root.with("lm_head", head.tied("weight", self.embedding_tie()?))
            }
            Head::Classifier => {
                root.with("score", linear(hidden_size, self.reader.labels()?, Bias::No))
            }
        };
        let output = (self.head == Head::LanguageModel).then_some("lm_head");
        Ok(Blueprint { root, dimensions, output })
    }
}
