//! Keys of a config that change memory or time and that no prediction follows (`knowledge/recipes/config_keys.json`).

use std::sync::LazyLock;

use serde::Deserialize;
use zeropilot_config::syntax::{LineIndex, Node, Value, decode, parse_hjson};
use zeropilot_job::{Direction, NotModelled, Origin};
use zeropilot_step::lower::NotFollowed;

use crate::memory::WrittenConfig;

#[derive(Debug, Deserialize)]
struct Key {
    key: String,
    /// Values with which it changes nothing.
    #[serde(default)]
    idle: Vec<String>,
    /// The only values with which it changes something.
    #[serde(default)]
    only: Vec<String>,
    direction: Direction,
    en: String,
    zh: String,
}

static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let text = const { zeropilot_knowledge::text("recipes/config_keys.json") };
    serde_json::from_str(text).expect("knowledge/recipes/config_keys.json is read by a test")
});

/// What a config says that no prediction follows.
pub(crate) fn not_modelled(config: &WrittenConfig) -> Vec<NotModelled> {
    let Some(text) = decode(&config.bytes).ok() else { return Vec::new() };
    let Ok(document) = parse_hjson(text) else { return Vec::new() };
    let lines = LineIndex::new(text);
    let found = KEYS.iter().filter_map(|known| {
        let node = known.key.split('.').try_fold(document.root(), member)?;
        let value = written(&node.value);
        let is = |values: &[String]| values.iter().any(|it| it.eq_ignore_ascii_case(&value));
        let is_active = if known.only.is_empty() { !is(&known.idle) } else { is(&known.only) };
        let line = lines.line_column(node.span.start).line;
        is_active.then(|| NotModelled {
            en: known.en.clone(),
            zh: known.zh.clone(),
            written: format!("{}: {value}", known.key),
            direction: known.direction,
            origin: Origin::File { name: config.name.clone(), line },
        })
    });
    found.collect()
}

/// The key that splits layers over ranks.
const SPLIT: &str = "tensor_parallel.autotp_size";

/// Takes out what a prediction follows after all.
pub(crate) fn drop_split(not_modelled: &mut Vec<NotModelled>) {
    not_modelled.retain(|one| !one.is_of(SPLIT));
}

/// Says why a prediction does not follow layers that ranks share.
pub(crate) fn explain_split(not_modelled: &mut [NotModelled], problem: NotFollowed) {
    let (en, zh) = match problem {
        NotFollowed::Version => ("for DeepSpeed 0.19 only", "只支持 DeepSpeed 0.19"),
        NotFollowed::Stage3 => ("for ZeRO stages 0 to 2 only", "只支持 ZeRO stage 0–2"),
        NotFollowed::OwnPlan => (
            "without `preset_model` and `partition_config` only",
            "不支持 `preset_model` 和 `partition_config`",
        ),
        NotFollowed::Family => {
            ("for Llama, Mistral, Qwen2 and Qwen3 only", "只支持 Llama、Mistral、Qwen2 和 Qwen3")
        }
        NotFollowed::Uneven => (
            "only if it divides heads, feed-forward width and vocabulary evenly",
            "只支持注意力头数、前馈层宽度和词表大小都能被卡数整除的情况",
        ),
        NotFollowed::Frozen => ("only if every parameter is trained", "只支持全参数训练"),
        NotFollowed::Recipe => (
            "only for supervised training on text with the model's own loss",
            "只支持文本监督训练，且须使用模型自带的 loss",
        ),
        NotFollowed::WholeTiedHead => (
            "unless `vocab_parallel_lm_head` is false and the embedding and the output layer share their weight",
            "不支持词嵌入与输出层共享权重而 `vocab_parallel_lm_head` 为 false 的情况",
        ),
    };
    for one in not_modelled.iter_mut().filter(|one| one.is_of(SPLIT)) {
        one.en = format!("{}, modeled {en}", one.en);
        one.zh = format!("{}，zeropilot 的预测{zh}", one.zh);
    }
}

fn member<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    let Value::Object(members) = &node.value else { return None };
    members.iter().rev().find(|member| member.key == key).map(|member| &member.value)
}

fn written(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Str(value) => value.clone(),
        Value::Array(_) => "[…]".to_owned(),
        Value::Object(_) => "{…}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(text: &str) -> Vec<String> {
        let config = WrittenConfig { name: "ds.json".to_owned(), bytes: text.as_bytes().to_vec() };
        not_modelled(&config).into_iter().map(|one| one.written).collect()
    }

    #[test]
    fn what_changes_nothing_is_not_named() {
        let idle = r#"{"sequence_parallel_size": 1, "compile": {"deepcompile": false}, "optimizer": {"type": "AdamW"}}"#;
        assert!(left_out(idle).is_empty());
    }

    #[test]
    fn what_no_prediction_follows_is_named_with_its_value() {
        let text = r#"{"sequence_parallel_size": 8, "tensor_parallel": {"autotp_size": 4},
            "zero_optimization": {"zenflow": {}}, "optimizer": {"type": "Muon"}}"#;
        let expected = [
            "sequence_parallel_size: 8",
            "tensor_parallel.autotp_size: 4",
            "zero_optimization.zenflow: {…}",
            "optimizer.type: Muon",
        ];
        assert_eq!(left_out(text), expected);
    }

    #[test]
    fn every_key_of_the_table_is_one_that_deepspeed_reads() {
        let schema = zeropilot_config::schema::EngineVersion::NEWEST.schema();
        for known in KEYS.iter() {
            let is_key = |path: &str| path == known.key;
            let is_read = schema.keys.iter().any(|key| is_key(&key.path));
            let section = known.key.split('.').next().unwrap_or_default();
            assert!(is_read || schema.sections.contains_key(section), "{}", known.key);
        }
    }
}
