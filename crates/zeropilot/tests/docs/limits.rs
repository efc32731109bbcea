//! The lists in the chapter about what is not modelled, from the data that answers use.

use serde_json::Value;
use zeropilot_text::Language;

use crate::pages::{Page, filled};

pub(crate) fn page(page: &Page, language: Language) -> String {
    let keys = read("knowledge/recipes/config_keys.json");
    let keys = keys.as_array().expect("a list").iter();
    let colon = if language == Language::Chinese { "：" } else { ": " };
    let keys = keys.map(|key| format!("- `{}`{colon}{}\n", text(key, "key"), words(key, language)));
    let arguments = read("knowledge/recipes/arguments.json");
    let settings = arguments["not_modelled"].as_array().expect("a list").iter();
    let settings = settings.map(|setting| format!("- {}\n", words(setting, language)));
    let text = filled(page, "config keys", &keys.collect::<String>());
    let page = Page { path: page.path.clone(), text };
    filled(&page, "job settings", &settings.collect::<String>())
}

fn read(path: &str) -> Value {
    serde_json::from_str(&Page::read(path).text).expect("JSON")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn words(value: &Value, language: Language) -> &str {
    text(value, if language == Language::Chinese { "zh" } else { "en" })
}
