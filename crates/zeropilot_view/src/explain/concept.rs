//! Concepts: short texts with a drawing, under `knowledge/concepts`.

use std::sync::OnceLock;

use serde::Deserialize;
use zeropilot_config::nearest::nearest;
use zeropilot_text::Language;

/// A concept that can be asked about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Concept {
    /// The name to ask for.
    pub name: String,
    /// Other names it answers to.
    pub also: Vec<String>,
    /// Keys that have to do with it.
    pub keys: Vec<String>,
}

macro_rules! texts {
    ($($name:literal),+ $(,)?) => {
        const TEXTS: &[(&str, &str, &str)] = &[$((
            $name,
            const { zeropilot_knowledge::text(concat!("concepts/", $name, ".en.md")) },
            const { zeropilot_knowledge::text(concat!("concepts/", $name, ".zh.md")) },
        )),+];
    };
}

texts!(
    "zero",
    "zero1",
    "zero2",
    "zero3",
    "memory",
    "traffic",
    "buckets",
    "prefetch",
    "offload",
    "nvme",
    "hpz",
    "batch",
    "auto",
    "loss-scale",
    "precision",
    "checkpointing",
    "moe",
    "oom",
    "lora",
    "dpo",
    "grpo",
    "ulysses",
    "fsdp2",
    "liger",
    "packing",
    "fragmentation",
    "zero-init",
    "evaluation",
    "saving",
);

impl Concept {
    /// All concepts, in the order in which they are best read.
    pub fn all() -> &'static [Self] {
        static ALL: OnceLock<Vec<Concept>> = OnceLock::new();
        ALL.get_or_init(|| {
            let json = const { zeropilot_knowledge::text("concepts/index.json") };
            // The file is part of the program and a test reads it.
            serde_json::from_str(json)
                .unwrap_or_else(|error| panic!("knowledge/concepts/index.json: {error}"))
        })
    }

    /// The concept of this name. Names with underscores are keys: `loss_scale` is one, `loss-scale`
    /// is a concept.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.trim().to_lowercase().replace(' ', "-");
        Self::all().iter().find(|concept| concept.name == name || concept.also.contains(&name))
    }

    /// The name of the concept nearest to a misspelt one.
    pub fn suggestion(name: &str) -> Option<String> {
        let name = name.trim().to_lowercase().replace(['_', ' '], "-");
        nearest(&name, Self::all().iter().map(|concept| concept.name.as_str()))
    }

    /// Its text, in Markdown.
    pub fn text(&self, language: Language) -> &'static str {
        let found = TEXTS.iter().find(|(name, ..)| *name == self.name);
        found.map_or("", |(_, english, chinese)| match language {
            Language::English => english,
            Language::Chinese => chinese,
        })
    }

    /// Its title.
    pub fn title(&self, language: Language) -> &'static str {
        let first = self.text(language).lines().next().unwrap_or("");
        first.trim_start_matches("# ")
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;
    use zeropilot_config::keys;

    use super::*;

    #[test]
    fn every_concept_has_both_texts_and_names_real_keys() {
        assert_eq!(Concept::all().len(), TEXTS.len());
        for concept in Concept::all() {
            for language in [Language::English, Language::Chinese] {
                let text = concept.text(language);
                assert!(text.starts_with("# "), "{}", concept.name);
                assert_eq!(text.matches("```").count(), 2, "{}: one drawing", concept.name);
            }
            for key in &concept.keys {
                assert!(keys::text(key).is_some(), "{}: {key}", concept.name);
            }
        }
    }

    #[test]
    fn drawings_fit_a_narrow_terminal() {
        for concept in Concept::all() {
            for language in [Language::English, Language::Chinese] {
                let drawing = concept.text(language).split("```").nth(1).unwrap_or("");
                for line in drawing.lines() {
                    assert!(line.width() <= 76, "{}: {line}", concept.name);
                }
            }
        }
    }

    #[test]
    fn concepts_answer_to_their_other_names() {
        let name = |asked: &str| Concept::find(asked).map(|concept| concept.name.as_str());
        assert_eq!(name("ZeRO-3"), Some("zero3"));
        assert_eq!(name("Loss Scale"), Some("loss-scale"));
        assert_eq!(name("loss_scale"), None);
        assert_eq!(name("zero++"), Some("hpz"));
        assert_eq!(name("zero_optimization"), None);
        assert_eq!(name("gradient_checkpointing"), Some("checkpointing"));
        assert_eq!(name("QLoRA"), Some("lora"));
        assert_eq!(name("zero.Init"), Some("zero-init"));
        assert_eq!(name("CUDA out of memory"), Some("oom"));
        assert_eq!(Concept::suggestion("ofload").as_deref(), Some("offload"));
    }
}
