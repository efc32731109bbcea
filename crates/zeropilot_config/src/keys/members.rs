//! The keys a section has, for suggestions.

use std::collections::BTreeSet;

use crate::schema::{Located, Schema};

use super::text::texts;

/// Names of the keys directly in a section (`""` for the top level), in order: what the version reads there and, where
/// it hands the section on, what has a text. Names that end the run are not among them.
pub fn members(schema: &Schema, section: &str) -> BTreeSet<String> {
    let below = |path: &str| {
        let name = match section {
            "" => path,
            section => path.strip_prefix(section)?.strip_prefix('.')?,
        };
        (!name.contains('.') && name != "*").then(|| name.to_owned())
    };
    let mut names: BTreeSet<String> = match section {
        "" => schema.top_level_keys().map(str::to_owned).collect(),
        section => schema
            .raw_members(section)
            .filter_map(|name| below(&format!("{section}.{name}")))
            .collect(),
    };
    if let Some(model) = schema.model_at(section) {
        names.extend(model.fields.iter().map(|field| field.key().to_owned()));
    }
    names.extend(schema.sections.keys().filter_map(|path| below(path)));
    let handed_on = texts().keys().filter_map(|path| {
        let name = below(path)?;
        matches!(schema.locate(path), Some(Located::HandedOn)).then_some(name)
    });
    names.extend(handed_on);
    let is_refused = |name: &String| {
        let path = if section.is_empty() { name.clone() } else { format!("{section}.{name}") };
        schema.removed(&path).is_some()
    };
    names.retain(|name| !is_refused(name));
    names
}

#[cfg(test)]
mod tests {
    use crate::schema::EngineVersion;

    use super::*;

    #[test]
    fn sections_of_every_kind_have_members() {
        let schema = EngineVersion::NEWEST.schema();
        for (section, member) in [
            ("", "zero_optimization"),
            ("zero_optimization", "stage3_prefetch_bucket_size"),
            ("zero_optimization.offload_param", "device"),
            ("aio", "block_size"),
            ("timers", "throughput"),
            ("timers.throughput", "enabled"),
            ("optimizer.params", "lr"),
            ("checkpoint.writer", "type"),
        ] {
            assert!(members(schema, section).contains(member), "{section}: {member}");
        }
        assert!(!members(schema, "").contains("elasticity"));
        assert!(members(schema, "nonsense").is_empty());
    }
}
