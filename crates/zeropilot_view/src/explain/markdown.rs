//! A key in Markdown, for editors: hovers, completions, descriptions in a schema.

use zeropilot_config::keys::{self, Facts, KeyText, Presence, history};
use zeropilot_config::schema::EngineVersion;
use zeropilot_text::{Language, Text};

use super::words;

/// What a key does, in a sentence or two; `None` if it has no text.
pub fn summary(path: &str, language: Language) -> Option<String> {
    let text = keys::text(&keys::canonical(path)?)?;
    Some(words::words(&text.what, language).to_owned())
}

/// That a key is deprecated and what replaces it.
pub fn deprecation(facts: &Facts<'_>, language: Language) -> Option<String> {
    words::deprecated(facts, language)
}

/// The page about a key, for one engine version; `None` if it has no text.
pub fn markdown(path: &str, version: EngineVersion, language: Language) -> Option<String> {
    let canonical = keys::canonical(path)?;
    let text = keys::text(&canonical)?;
    let mut page = words::words(&text.what, language).to_owned();
    for (label, said) in rows(path, &canonical, text, version, language) {
        let colon = Text::new(": ", "：").get(language);
        page.push_str(&format!("\n\n**{label}**{colon}{said}"));
    }
    Some(page)
}

fn rows(
    path: &str,
    canonical: &str,
    text: &KeyText,
    version: EngineVersion,
    language: Language,
) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut add = |en, zh, said: Option<String>| {
        if let Some(said) = said {
            rows.push((Text::new(en, zh).get(language), said));
        }
    };
    let said = |words: &Option<keys::Words>| {
        words.as_ref().map(|words| words::words(words, language).to_owned())
    };
    let facts = match keys::presence(version.schema(), path) {
        Presence::Read(facts) => Some(facts),
        _ => None,
    };
    let takes = facts.as_ref().and_then(|facts| words::takes(&facts.takes, language));
    let unit = words::unit(text.unit, language);
    let unit = match takes {
        Some(takes) if text.unit == keys::Unit::Choice => takes,
        Some(takes) => format!("{unit}{}{takes}", Text::new("; ", "；").get(language)),
        None => unit.to_owned(),
    };
    add("unit", "单位", (text.unit != keys::Unit::Section).then_some(unit));
    let default = facts.as_ref().and_then(|facts| facts.default.as_ref());
    add("default", "默认值", default.map(|default| format!("`{}`", words::value(default))));
    add("needs", "前提条件", words::needs(text, language));
    add("effect", "影响", words::no_cost(text, language));
    add("memory", "显存和主机内存", said(&text.memory));
    add("speed", "速度", said(&text.speed));
    add("mistakes", "易错", said(&text.mistake));
    let versions = words::versions(&history(canonical), language);
    add("versions", "版本", (!versions.is_empty()).then(|| versions.join("; ")));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_says_what_the_key_does_in_the_version_asked_about() {
        let page = |version: &str, language| {
            let version = EngineVersion::nearest(version).expect("a version");
            markdown("zero_optimization.offload_optimizer.pin_memory", version, language)
        };
        let newest = page("0.19.8", Language::English).expect("a page");
        assert!(newest.contains("**default**: `true`"), "{newest}");
        let older = page("0.18.9", Language::Chinese).expect("a page");
        assert!(older.contains("**默认值**：`false`"), "{older}");
        assert_eq!(markdown("nonsense", EngineVersion::NEWEST, Language::English), None);
    }
}
