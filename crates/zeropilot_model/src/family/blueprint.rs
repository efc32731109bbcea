//! What a family is given, and what it gives back.

use std::borrow::Cow;

use crate::architecture::{Module, TieGroup};
use crate::config::{ConfigError, FamilyFacts, Reader};
use crate::dimensions::Dimensions;
use crate::family::Family;
use crate::family::parts::{Bias, linear};
use crate::model::Weights;
use crate::part::PartPath;

/// How a family builds its tree.
pub(crate) type Builder = fn(&Context<'_>) -> Result<Blueprint, ConfigError>;

/// What stands on top of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    LanguageModel,
    Classifier,
    /// Nothing: the model gives hidden states, as one that makes embeddings does.
    None,
}

/// What a family builds from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) facts: &'static FamilyFacts,
    pub(crate) head: Head,
    pub(crate) weights: Weights,
    /// Whether the output is the embedding, where a config around this one decides it.
    pub(crate) tied: Option<bool>,
}

/// Whose language model a model has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Language {
    /// Its own: it reads text alone.
    Own,
    /// That of another family.
    Of(Family),
    /// One that no family has alone.
    Other,
}

impl Language {
    /// The family of the language model of a model of this family.
    pub(crate) fn of(self, family: Family) -> Option<Family> {
        match self {
            Self::Own => Some(family),
            Self::Of(language) => Some(language),
            Self::Other => None,
        }
    }
}

/// A finished tree.
#[derive(Debug)]
pub(crate) struct Blueprint {
    pub(crate) root: Module,
    pub(crate) dimensions: Dimensions,
    /// The module that gives the logits, if it is the model's output embedding.
    pub(crate) output: Option<&'static str>,
    /// Where the parts beside the language model are.
    pub(crate) parts: &'static [PartPath],
    /// Whose language model it has.
    pub(crate) language: Language,
}

impl Blueprint {
    /// A model without any part that sees or hears.
    pub(super) fn of_text(
        root: Module,
        dimensions: Dimensions,
        output: Option<&'static str>,
    ) -> Self {
        Self { root, dimensions, output, parts: &[], language: Language::Own }
    }
}

/// The group of the embedding and the output matrix.
pub(super) const EMBEDDING: TieGroup = TieGroup(0);

impl Context<'_> {
    /// The group of the embedding, if the config ties the output to it.
    pub(super) fn embedding_tie(&self) -> Result<Option<TieGroup>, ConfigError> {
        let tied = match self.tied {
            Some(tied) => tied,
            None => self.reader.flag("tie_word_embeddings")?,
        };
        Ok((tied && self.head == Head::LanguageModel).then_some(EMBEDDING))
    }

    /// The class of the whole model.
    pub(super) fn class(&self) -> Cow<'static, str> {
        let FamilyFacts { language_model_class, classifier_class, base_class, .. } = self.facts;
        Cow::Borrowed(match self.head {
            Head::LanguageModel => language_model_class.as_str(),
            Head::Classifier => classifier_class.as_deref().unwrap_or_default(),
            Head::None => base_class.as_deref().unwrap_or_default(),
        })
    }

    /// A base model under `base` with `lm_head` or `score` beside it, or the base model alone.
    pub(super) fn with_head(
        &self,
        base: &'static str,
        model: Module,
        dimensions: Dimensions,
        bias: Bias,
    ) -> Result<Blueprint, ConfigError> {
        if self.head == Head::None {
            return Ok(Blueprint::of_text(model, dimensions, None));
        }
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
            Head::None => root,
        };
        let output = (self.head == Head::LanguageModel).then_some("lm_head");
        Ok(Blueprint::of_text(root, dimensions, output))
    }
}
