//! Words for what the schemas and texts know as types: units, kinds of value, versions.

use zeropilot_config::keys::{Claim, Facts, KeyText, NoCost, Presence, Takes, Unit, Words};
use zeropilot_config::python::PyValue;
use zeropilot_config::schema::{Bounds, EngineVersion, FieldType};
use zeropilot_text::{Language, Text, tr};

/// The words in one language.
pub(super) fn words(words: &Words, language: Language) -> &str {
    match language {
        Language::English => &words.en,
        Language::Chinese => &words.zh,
    }
}

/// A value as a JSON file would say it; a round number also as people write it.
pub fn value(value: &PyValue) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    let zeros = json.len() - json.trim_end_matches('0').len();
    let digits = json.trim_end_matches('0');
    let is_round = matches!(value, PyValue::Int(_)) && zeros >= 5 && digits.len() == 1;
    if is_round { format!("{json} ({digits}e{zeros})") } else { json }
}

/// A unit's name in machine formats.
pub(super) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::Boolean => "boolean",
        Unit::Choice => "choice",
        Unit::Elements => "elements",
        Unit::Bytes => "bytes",
        Unit::Samples => "samples",
        Unit::Tokens => "tokens",
        Unit::Steps => "steps",
        Unit::MicroSteps => "micro-steps",
        Unit::Ranks => "ranks",
        Unit::Layers => "layers",
        Unit::Count => "count",
        Unit::Number => "number",
        Unit::Share => "share",
        Unit::PowerOfTwo => "power-of-two",
        Unit::Path => "path",
        Unit::Text => "text",
        Unit::List => "list",
        Unit::Section => "section",
    }
}

/// What a unit is, in words.
pub(super) fn unit(unit: Unit, language: Language) -> &'static str {
    let text = match unit {
        Unit::Boolean => Text::new("true or false", "true 或 false"),
        Unit::Choice => Text::new("one of several options", "若干选项之一"),
        Unit::Elements => Text::new("elements of a tensor, not bytes", "张量的元素个数，不是字节"),
        Unit::Bytes => Text::new("bytes", "字节"),
        Unit::Samples => Text::new("samples", "样本数"),
        Unit::Tokens => Text::new("tokens", "token 数"),
        Unit::Steps => Text::new("optimizer steps", "步数（按参数更新计）"),
        Unit::MicroSteps => Text::new("micro-steps per optimizer step", "每次更新的 micro step 数"),
        Unit::Ranks => Text::new("ranks (GPUs)", "rank 数（卡数）"),
        Unit::Layers => Text::new("layers", "层数"),
        Unit::Count => Text::new("a count", "个数"),
        Unit::Number => Text::new("a number without a unit", "无单位的数"),
        Unit::Share => Text::new("a fraction from 0 to 1", "0 到 1 之间的比例"),
        Unit::PowerOfTwo => Text::new("an exponent of 2", "2 的指数"),
        Unit::Path => Text::new("a path", "路径"),
        Unit::Text => Text::new("text", "字符串"),
        Unit::List => Text::new("a list", "列表"),
        Unit::Section => Text::new("a section with keys of its own", "配置段，内含若干键"),
    };
    text.get(language)
}

/// What a key takes, as far as the unit does not say it already.
pub(super) fn takes(takes: &Takes<'_>, language: Language) -> Option<String> {
    match takes {
        Takes::Typed(kind, bounds) => typed(kind, bounds, language),
        Takes::Words(words) => Some(listed(words.iter().copied(), language)),
        Takes::Anything | Takes::Section => None,
    }
}

fn typed(kind: &FieldType, bounds: &Bounds, language: Language) -> Option<String> {
    let name = match kind {
        FieldType::Optional(inner) => {
            let inner = typed(inner, bounds, language)?;
            return Some(tr!(language, "{inner}, or null", "{inner}，或 null"));
        }
        FieldType::Int => Text::new("whole number", "整数"),
        FieldType::Float => Text::new("number", "数字"),
        FieldType::IntEnum(values) => {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            return Some(listed(values.iter().map(String::as_str), language));
        }
        FieldType::StrEnum(values) | FieldType::Literal(values) => {
            return Some(listed(values.iter().map(String::as_str), language));
        }
        _ => return None,
    };
    let name = name.get(language);
    let limits = limits(bounds);
    Some(if limits.is_empty() { name.to_owned() } else { format!("{name} {limits}") })
}

fn limits(bounds: &Bounds) -> String {
    let limits = [(">", bounds.gt), ("≥", bounds.ge), ("<", bounds.lt), ("≤", bounds.le)];
    let limits = limits.into_iter().filter_map(|(sign, limit)| Some(format!("{sign} {}", limit?)));
    limits.collect::<Vec<_>>().join(", ")
}

pub(super) fn listed<'a>(items: impl Iterator<Item = &'a str>, language: Language) -> String {
    let items: Vec<String> = items.map(|item| format!("`{item}`")).collect();
    items.join(Text::new(", ", "、").get(language))
}

/// Why a key has no cost.
pub(super) fn no_cost(text: &KeyText, language: Language) -> Option<String> {
    let newest = EngineVersion::NEWEST;
    Some(match text.no_cost? {
        NoCost::None => tr!(language, "no effect on memory or speed", "不影响显存、主机内存和速度"),
        NoCost::Unread => tr!(
            language,
            "none: DeepSpeed {newest} ignores this key",
            "无：DeepSpeed {newest} 不读取该键，设置不生效"
        ),
    })
}

/// "`zero_optimization.stage` 1 or 2, and `fp16.enabled` true".
pub(super) fn needs(text: &KeyText, language: Language) -> Option<String> {
    let one = |(key, values): (&String, &Vec<serde_json::Value>)| {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        format!("`{key}` {}", values.join(Text::new(" or ", " 或 ").get(language)))
    };
    let all: Vec<String> = text.needs.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(Text::new(" and ", "，且 ").get(language)))
}

/// Which statements about the key a run of the engine supports.
pub(super) fn evidence(text: &KeyText, language: Language) -> String {
    let is_measured = |claim| !text.unmeasured.contains(&claim);
    let effect = match (is_measured(Claim::Effect), text.unchanged) {
        (true, true) => Text::new(
            "Measured on two CPU ranks: memory and communication are the same with and without the key. Statements about other effects come from DeepSpeed's source code.",
            "在两个 CPU rank 上实测：有无该键时内存和通信都相同。其他影响来自 DeepSpeed 源码，未经实测。",
        ),
        (true, false) => Text::new(
            "Measured: memory and communication of two CPU ranks, with and without the key. Statements about other effects come from DeepSpeed's source code.",
            "实测：在两个 CPU rank 上对比了有无该键时的内存和通信。其他影响来自 DeepSpeed 源码，未经实测。",
        ),
        (false, _) if text.several_nodes => Text::new(
            "Taken from DeepSpeed's source code, not measured: the recorded runs use one node.",
            "来自 DeepSpeed 源码，未经实测：已有的实测都只用一个节点。",
        ),
        (false, _) => Text::new(
            "Taken from DeepSpeed's source code, not measured.",
            "来自 DeepSpeed 源码，未经实测。",
        ),
    };
    let needs = match (text.needs.is_empty(), is_measured(Claim::Needs)) {
        (true, _) => "",
        (false, true) => Text::new(
            " Also measured: the key changes nothing if its requirements are not met.",
            "前提条件也经过实测：不满足时，该键不生效。",
        )
        .get(language),
        (false, false) if !is_measured(Claim::Effect) => "",
        (false, false) => Text::new(
            " Not measured: whether the key has an effect if its requirements are not met.",
            "未经实测：不满足前提条件时，该键是否生效。",
        )
        .get(language),
    };
    format!("{}{needs}", effect.get(language))
}

type History = [(EngineVersion, Presence<'static>)];

/// The default, with the versions in which it differs.
pub(super) fn default(history: &History, language: Language) -> Option<String> {
    let mut runs: Vec<(Option<&PyValue>, EngineVersion, EngineVersion)> = Vec::new();
    for (version, presence) in history {
        let default = match presence {
            Presence::Read(facts) => facts.default.as_ref(),
            _ => None,
        };
        match runs.last_mut() {
            Some((last, _, end)) if *last == default => *end = *version,
            _ => runs.push((default, *version, *version)),
        }
    }
    runs.retain(|(default, ..)| default.is_some());
    let (newest, older) = runs.split_last()?;
    let newest_value = value(newest.0?);
    if older.is_empty() {
        return Some(newest_value);
    }
    let mut said = vec![dated(&newest_value, newest.1, newest.2, language)];
    said.extend(older.iter().rev().filter_map(|(default, start, end)| {
        Some(dated(&value((*default)?), *start, *end, language))
    }));
    Some(said.join(Text::new("; ", "；").get(language)))
}

fn dated(value: &str, start: EngineVersion, end: EngineVersion, language: Language) -> String {
    match start == end {
        true => tr!(language, "{value} in {end}", "{end} 为 {value}"),
        false => tr!(language, "{value} from {start} to {end}", "{start} 至 {end} 为 {value}"),
    }
}

/// Which known versions read the key, where not all do; what replaced it, where something has.
pub(super) fn versions(history: &History, language: Language) -> Vec<String> {
    let is_read = |presence: &Presence<'_>| matches!(presence, Presence::Read(_));
    let mut said = Vec::new();
    let read: Vec<EngineVersion> = history
        .iter()
        .filter(|(_, presence)| is_read(presence))
        .map(|(version, _)| *version)
        .collect();
    if let (Some(first), Some(last)) = (read.first(), read.last())
        && read.len() < history.len()
    {
        // Releases between two known versions may do either.
        let mut known = history.iter().map(|(version, _)| *version);
        let (span, other) = match *last == EngineVersion::NEWEST {
            true => (
                tr!(language, "read in {first} and later", "{first} 及以后的版本读取"),
                known.rfind(|version| version < first),
            ),
            false => (
                tr!(language, "read from {first} to {last}", "{first} 至 {last} 读取"),
                known.find(|version| version > last),
            ),
        };
        said.push(match other {
            Some(other) => {
                tr!(
                    language,
                    "{span}; {other} does not read the key",
                    "{span}；{other} 不读取这个键"
                )
            }
            None => span,
        });
    }
    if let Some((version, Presence::Refused(message))) = history.last() {
        said.push(tr!(
            language,
            "{version} rejects the key: {message}",
            "{version} 会拒绝这个键：{message}"
        ));
    }
    if let Some((_, Presence::Read(facts))) = history.last() {
        said.extend(deprecated(facts, language));
    }
    said
}

pub(super) fn deprecated(facts: &Facts<'_>, language: Language) -> Option<String> {
    let new = facts.deprecated?.new.as_str();
    Some(match new {
        "" => tr!(language, "deprecated", "已弃用"),
        new => tr!(language, "deprecated: write `{new}`", "已弃用，请改用 `{new}`"),
    })
}

#[cfg(test)]
mod tests {
    use zeropilot_config::keys::history;

    use super::*;

    #[test]
    fn round_numbers_are_also_said_short() {
        assert_eq!(value(&PyValue::Int(500_000_000.into())), "500000000 (5e8)");
        assert_eq!(value(&PyValue::Int(1_048_576.into())), "1048576");
        assert_eq!(value(&PyValue::Int(1000.into())), "1000");
        assert_eq!(value(&PyValue::Bool(true)), "true");
        assert_eq!(value(&PyValue::None), "null");
    }

    #[test]
    fn defaults_that_moved_name_their_versions() {
        let said = |path: &str, language| default(&history(path), language);
        assert_eq!(
            said("gradient_clipping", Language::English).as_deref(),
            Some("1.0 in 0.19.8; 0.0 from 0.14.5 to 0.18.9")
        );
        assert_eq!(
            said("gradient_clipping", Language::Chinese).as_deref(),
            Some("0.19.8 为 1.0；0.14.5 至 0.18.9 为 0.0")
        );
        assert_eq!(said("fp16.hysteresis", Language::English).as_deref(), Some("2"));
    }

    #[test]
    fn versions_are_named_where_not_all_read_the_key() {
        let said = |path: &str| versions(&history(path), Language::English).join(" | ");
        assert_eq!(said("zero_optimization.stage"), "");
        assert_eq!(said("zero_optimization.cpu_offload"), "deprecated: write `offload_optimizer`");
        let gone =
            "read from 0.14.5 to 0.18.9; 0.19.8 does not read the key | 0.19.8 rejects the key:";
        assert!(said("elasticity").starts_with(gone));
        // DeepSpeed 0.17.5 was the first release with it.
        assert_eq!(
            said("zero_optimization.zenflow"),
            "read in 0.17.6 and later; 0.16.9 does not read the key"
        );
    }
}
