//! What a schema says to people: descriptions, defaults, warnings about keys that are going or gone.

use serde_json::{Map, Value as Json, json};
use zeropilot_config::keys::{self, Presence};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::EngineVersion;
use zeropilot_text::{Language, Text, tr};

use crate::explain::{deprecation, markdown, summary};

/// One text in several languages, a paragraph each.
fn in_all(languages: &[Language], say: impl Fn(Language) -> Option<String>) -> Option<String> {
    let said: Vec<String> = languages.iter().filter_map(|language| say(*language)).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

/// What the schema is for.
pub(super) fn about(version: EngineVersion, languages: &[Language]) -> String {
    let said = |language| {
        Some(tr!(
            language,
            "The keys that DeepSpeed {version} reads from its config file. DeepSpeed rejects every config that this schema rejects; `zeropilot check` also finds errors that depend on several keys or on the number of ranks.",
            "DeepSpeed {version} 从配置文件里读取的键。本 schema 判为错误的配置，DeepSpeed 一定拒绝；涉及多个键或总卡数（world size）的错误，请用 `zeropilot check` 检查。"
        ))
    };
    in_all(languages, said).unwrap_or_default()
}

/// A key whose mere presence ends the run.
pub(super) fn refused(version: EngineVersion, message: &str, languages: &[Language]) -> Json {
    let said = |language| {
        Some(tr!(
            language,
            "DeepSpeed {version} rejects the config: {message}",
            "DeepSpeed {version} 会拒绝这份配置：{message}"
        ))
    };
    let said = in_all(languages, said).unwrap_or_default();
    json!({ "description": said, "errorMessage": said, "not": {}, "doNotSuggest": true })
}

/// What an editor says of a key that a section does not have.
pub(super) fn unknown_key(version: EngineVersion, languages: &[Language]) -> String {
    let said = |language| {
        Some(tr!(
            language,
            "in this section, DeepSpeed {version} has no key of this name and rejects the config",
            "DeepSpeed {version} 在这个配置段里没有这个键，启动时会报错"
        ))
    };
    in_all(languages, said).unwrap_or_default()
}

/// Adds description, default and warnings to the schema of a key.
pub(super) fn describe(
    written: &mut Map<String, Json>,
    path: &str,
    version: EngineVersion,
    languages: &[Language],
) {
    if let Some(said) = in_all(languages, |language| summary(path, language)) {
        written.insert("description".to_owned(), said.into());
    }
    if let Some(said) = in_all(languages, |language| markdown(path, version, language)) {
        written.insert("markdownDescription".to_owned(), said.into());
    }
    let Presence::Read(facts) = keys::presence(version.schema(), path) else { return };
    if let Some(default) = facts.default.as_ref().filter(|default| **default != PyValue::None) {
        written.insert("default".to_owned(), json!(default));
    }
    if facts.deprecated.is_some() {
        written.insert("deprecated".to_owned(), true.into());
        let said = in_all(languages, |language| deprecation(&facts, language));
        let plain =
            Text::new("deprecated", "已弃用").get(languages.first().copied().unwrap_or_default());
        let said = said.unwrap_or_else(|| plain.to_owned());
        written.insert("deprecationMessage".to_owned(), said.into());
    }
}
