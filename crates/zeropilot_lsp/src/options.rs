//! What an editor may set: for whom and in which language its files are judged.

use serde::Deserialize;
use zeropilot_config::front_end::FrontEnd;
use zeropilot_config::schema::EngineVersion;
use zeropilot_lint::Settings;
use zeropilot_text::Language;

/// How a session judges and speaks.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Everything beside the file that decides its fate.
    pub settings: Settings,
    /// The language of all texts; decided by the editor if it is not set here.
    pub language: Option<Language>,
}

/// The `initializationOptions` of the protocol. What is not known is left alone: editors send more than they must.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Wishes {
    deepspeed_version: Option<String>,
    world_size: Option<usize>,
    front_end: Option<String>,
    language: Option<String>,
}

impl Options {
    /// With what the editor asks for in `initializationOptions` and says about its own language. What it asks for and
    /// does not exist is given back as sentences.
    pub(crate) fn with_wishes(
        mut self,
        wishes: Option<&serde_json::Value>,
        locale: Option<&str>,
    ) -> (Self, Vec<String>) {
        let mut refused = Vec::new();
        let wishes = match wishes.filter(|wishes| !wishes.is_null()) {
            None => Wishes::default(),
            Some(wishes) => Wishes::deserialize(wishes).unwrap_or_else(|error| {
                refused.push(format!("zeropilot: initializationOptions: {error}"));
                Wishes::default()
            }),
        };
        if let Some(text) = wishes.deepspeed_version {
            match EngineVersion::nearest(&text) {
                Ok(version) => self.settings.version = version,
                Err(error) => refused.push(format!("zeropilot: deepspeedVersion: {error}")),
            }
        }
        if let Some(name) = wishes.front_end {
            match name.parse::<FrontEnd>() {
                Ok(front_end) => self.settings.front_end = Some(front_end),
                Err(error) => refused.push(format!("zeropilot: frontEnd: {error}")),
            }
        }
        if wishes.world_size == Some(0) {
            refused.push("zeropilot: worldSize must be at least 1".to_owned());
        } else if wishes.world_size.is_some() {
            self.settings.world_size = wishes.world_size;
        }
        let asked = wishes.language.as_deref().map(language);
        self.language = asked.or(self.language).or(locale.map(language));
        (self, refused)
    }
}

/// `zh`, `zh-CN` and `zh_TW` are Chinese; everything else is told in English.
fn language(tag: &str) -> Language {
    match tag.get(..2) {
        Some(tag) if tag.eq_ignore_ascii_case("zh") => Language::Chinese,
        _ => Language::English,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_editor_decides_and_wrong_wishes_are_told() {
        let wishes = json!({"deepspeedVersion": "0.16.4", "worldSize": 8, "frontEnd": "accelerate", "more": 1});
        let (options, refused) = Options::default().with_wishes(Some(&wishes), Some("zh-cn"));
        assert!(refused.is_empty());
        assert_eq!(options.settings.version.name(), "0.16.9");
        assert_eq!(options.settings.world_size, Some(8));
        assert_eq!(options.settings.front_end, Some(FrontEnd::Accelerate));
        assert_eq!(options.language, Some(Language::Chinese));
        let wishes = json!({"deepspeedVersion": "latest", "worldSize": 0, "language": "en"});
        let (options, refused) = Options::default().with_wishes(Some(&wishes), Some("zh-cn"));
        assert_eq!(refused.len(), 2);
        assert_eq!(options.language, Some(Language::English));
        let (_, refused) = Options::default().with_wishes(Some(&json!({"worldSize": "two"})), None);
        assert_eq!(refused.len(), 1);
    }
}
