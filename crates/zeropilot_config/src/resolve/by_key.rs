//! What a key became, by the path under which it is written.
//!
//! The engine keeps values under names of its own; [`ResolvedConfig::attributes`] has those.

use crate::python::PyValue;
use crate::schema::{EngineVersion, Model, Schema};

use super::ResolvedConfig;

/// Where the engine keeps the sections that it reads through models.
const SECTIONS: [(&str, &str); 14] = [
    ("zero_optimization", "zero_config"),
    ("fp16", "float16_config"),
    ("bf16", "bfloat16_config"),
    ("bfloat16", "bfloat16_config"),
    ("comms_logger", "comms_config.comms_logger"),
    ("compile", "compile_config"),
    ("hybrid_engine", "hybrid_engine"),
    ("tensor_parallel", "tensor_parallel_config"),
    ("timers.throughput", "timers_config"),
    ("weight_quantization", "weight_quantization_config"),
    ("tensorboard", "monitor_config.tensorboard"),
    ("wandb", "monitor_config.wandb"),
    ("csv_monitor", "monitor_config.csv_monitor"),
    ("comet", "monitor_config.comet"),
];

/// The values of a resolved config, by the keys that set them.
#[derive(Debug, Clone)]
pub struct ValuesByKey {
    version: EngineVersion,
    attributes: PyValue,
}

impl ResolvedConfig {
    /// Its values by key.
    pub fn by_key(&self) -> ValuesByKey {
        ValuesByKey { version: self.version(), attributes: self.attributes() }
    }
}

impl ValuesByKey {
    /// What the key at a dotted path is, written or not; `None` where the engine keeps no value of
    /// its own for it.
    pub fn get(&self, path: &str) -> Option<&PyValue> {
        let schema = self.version.schema();
        for (section, attribute) in SECTIONS {
            let rest = path.strip_prefix(section).map(|rest| rest.strip_prefix('.'));
            if let Some(Some(rest)) = rest
                && let Some(model) = schema.section_model(section)
            {
                return field(schema, model, at(&self.attributes, attribute)?, rest);
            }
        }
        self.read_by_hand(schema, path)
    }

    fn read_by_hand(&self, schema: &Schema, path: &str) -> Option<&PyValue> {
        let mut holder = path;
        loop {
            let rest = path[holder.len()..].trim_start_matches('.');
            if let Some(key) = schema.raw_key(holder)
                && let Some(attribute) = key.attributes.first()
            {
                return at(at(&self.attributes, attribute)?, rest);
            }
            if let Some((section, name)) = holder.rsplit_once('.')
                && let Some(key) = schema.raw_key(&format!("{section}.*"))
                && let Some(attribute) = key.attributes.first()
            {
                return at(&self.attributes, &attribute.replace('*', name));
            }
            match holder.rsplit_once('.') {
                Some((parent, _)) => holder = parent,
                // The batch sizes and the like are kept under the key's own name.
                None => return at(&self.attributes, path).filter(|_| !path.contains('.')),
            }
        }
    }
}

/// A field by the key a user writes for it, through nested sections.
fn field<'v>(
    schema: &Schema,
    model: &Model,
    section: &'v PyValue,
    path: &str,
) -> Option<&'v PyValue> {
    let (key, rest) = path.split_once('.').map_or((path, None), |(key, rest)| (key, Some(rest)));
    let field = model.field_for_key(key)?;
    let value = section.get(&field.name)?;
    match (rest, schema.model_of(field)) {
        (None, _) => Some(value),
        (Some(rest), Some(inner)) => self::field(schema, inner, value, rest),
        (Some(rest), None) => at(value, rest),
    }
}

fn at<'v>(value: &'v PyValue, path: &str) -> Option<&'v PyValue> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(value, |value, part| value.get(part))
}

#[cfg(test)]
mod tests {
    use crate::resolve::{Circumstances, resolve};
    use crate::schema::KNOWN_VERSIONS;
    use crate::syntax::parse_hjson;

    use super::*;

    fn values(text: &str, version: &str) -> ValuesByKey {
        let document = parse_hjson(text).expect("a config");
        let version = EngineVersion::nearest(version).expect("a version");
        let resolution = resolve(document.root(), Circumstances::new(version, 4));
        resolution.resolved.expect("accepted").by_key()
    }

    /// Expected values are arithmetic (2 × 8 × 4 ranks) or what the file says.
    #[test]
    fn values_are_found_under_the_keys_that_set_them() {
        let text = r#"{
          "train_micro_batch_size_per_gpu": 2,
          "gradient_accumulation_steps": 8,
          "bf16": {"enabled": true},
          "optimizer": {"type": "AdamW", "params": {"lr": 0.5}},
          "zero_optimization": {
            "stage": 3,
            "stage3_prefetch_bucket_size": 1e6,
            "offload_optimizer": {"device": "cpu", "ratio": 1}
          },
          "pipeline": {"stages": 2},
          "aio": {"queue_depth": 16}
        }"#;
        for version in KNOWN_VERSIONS {
            let values = values(text, version);
            let get = |path: &str| values.get(path).cloned();
            let int = |value: i64| Some(PyValue::Int(value.into()));
            assert_eq!(get("train_batch_size"), int(64), "{version}");
            assert_eq!(get("zero_optimization.stage"), int(3), "{version}");
            let prefetch = "zero_optimization.stage3_prefetch_bucket_size";
            assert_eq!(get(prefetch), int(1_000_000), "{version}");
            let ratio = get("zero_optimization.offload_optimizer.ratio");
            assert_eq!(ratio, Some(PyValue::Float(1.0)), "{version}");
            assert_eq!(get("zero_optimization.overlap_comm"), Some(PyValue::Bool(true)));
            assert_eq!(get("bf16.enabled"), Some(PyValue::Bool(true)), "{version}");
            assert_eq!(get("optimizer.type"), Some(PyValue::str("adamw")), "{version}");
            assert_eq!(get("optimizer.params.lr"), Some(PyValue::Float(0.5)), "{version}");
            assert_eq!(get("pipeline.stages"), int(2), "{version}");
            assert_eq!(get("aio.queue_depth"), int(16), "{version}");
            assert_eq!(get("nonsense"), None, "{version}");
        }
    }
}
