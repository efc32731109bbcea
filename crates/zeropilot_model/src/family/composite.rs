//! What models that see or hear have in common: a language model below the whole, with a config of its own.

use crate::architecture::Module;
use crate::config::{ConfigError, TEXT_CONFIG};
use crate::dimensions::Dimensions;
use crate::family::Family;
use crate::family::blueprint::{Blueprint, Context, EMBEDDING, Head, Language};
use crate::family::parts::{Bias, linear};
use crate::model::Weights;
use crate::part::PartPath;

/// Whose `tie_word_embeddings` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tying {
    /// That of the whole.
    Outer,
    /// Either that of the whole or that of the language model switches it on.
    Either,
    /// That of the language model.
    Inner,
    /// The class never ties.
    Never,
}

/// A language model that stands below the whole.
pub(super) struct LanguageModel {
    /// The model without its output.
    pub(super) module: Module,
    pub(super) dimensions: Dimensions,
    language: Language,
    tied: bool,
}

impl<'a> Context<'a> {
    /// What the language model is built from.
    pub(super) fn text(&self, tying: Tying) -> Result<Context<'a>, ConfigError> {
        let reader = self.reader.section(TEXT_CONFIG)?.reader;
        reader.refuse(&["per_layer_config"])?;
        let key = "tie_word_embeddings";
        let tied = match tying {
            // Classes of transformers 5 tie by default where files of older ones left it to the text config, and
            // loading a checkpoint with an output of its own unties it.
            Tying::Outer if self.weights == Weights::Checkpoint && !self.reader.is_given(key) => {
                self.reader.flag(key)? && reader.flag(key)?
            }
            Tying::Outer => self.reader.flag(key)?,
            Tying::Either => self.reader.flag(key)? || reader.flag(key)?,
            Tying::Inner => reader.flag(key)?,
            Tying::Never => false,
        };
        Ok(Context { reader, head: Head::LanguageModel, tied: Some(tied), ..*self })
    }

    /// The language model that the text config names, of whatever family it is.
    pub(super) fn named_language_model(&self, tying: Tying) -> Result<LanguageModel, ConfigError> {
        let model_type = self.reader.section(TEXT_CONFIG)?.model_type;
        let family = Family::from_model_type(model_type).ok_or_else(|| unknown(model_type))?;
        self.language_model(tying, Language::Of(family), |text| family.build(text))
    }

    /// The language model that a builder makes of the text config.
    pub(super) fn language_model(
        &self,
        tying: Tying,
        language: Language,
        build: impl Fn(&Context<'_>) -> Result<Blueprint, ConfigError>,
    ) -> Result<LanguageModel, ConfigError> {
        let text = self.text(tying)?;
        let Blueprint { root, dimensions, .. } = build(&text)?;
        // A family that keeps its model elsewhere has no place below another.
        let module = root.child("model").filter(|model| model.child("embed_tokens").is_some());
        let module = match module {
            Some(module) => module.clone(),
            None => return Err(unknown(self.reader.section(TEXT_CONFIG)?.model_type)),
        };
        Ok(LanguageModel { module, dimensions, language, tied: text.tied == Some(true) })
    }

    /// The whole: a model that holds the parts, and the output beside it.
    pub(super) fn with_output(
        &self,
        model: Module,
        language: &LanguageModel,
        parts: &'static [PartPath],
    ) -> Blueprint {
        let LanguageModel { dimensions, language, tied, .. } = *language;
        let head = linear(dimensions.hidden_size, dimensions.vocab_size, Bias::No)
            .tied("weight", tied.then_some(EMBEDDING));
        let root = Module::new(self.class()).with("model", model).with("lm_head", head);
        Blueprint { root, dimensions, output: Some("lm_head"), parts, language }
    }
}

fn unknown(model_type: &str) -> ConfigError {
    ConfigError::UnknownPart { key: TEXT_CONFIG.to_owned(), model_type: model_type.to_owned() }
}
