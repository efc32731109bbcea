//! Where a path that a user writes leads to in a schema.

use super::{Field, FieldType, Model, RawKey, Schema};

/// What a version knows about a path.
#[derive(Debug, Clone, Copy)]
pub enum Located<'s> {
    /// A section read through a model.
    Section(&'s Model),
    /// A field of a model. It may be a section itself; see [`Schema::model_of`].
    Field(&'s Field),
    /// A key read by hand. It may be a section itself.
    Raw(&'s RawKey),
    /// A member of something that the engine hands on whole, such as `optimizer.params.lr`.
    HandedOn,
}

impl Schema {
    /// What this version knows about a dotted path; `None` if it reads no such key.
    pub fn locate(&self, path: &str) -> Option<Located<'_>> {
        if let Some(key) = self.raw_key(path) {
            return Some(Located::Raw(key));
        }
        if let Some(model) = self.section_model(path) {
            return Some(Located::Section(model));
        }
        let (parent, name) = path.rsplit_once('.')?;
        if let Some(model) = self.model_at(parent) {
            return model.field_for_key(name).map(Located::Field);
        }
        if let Some(key) = self.raw_key(&format!("{parent}.*")) {
            return Some(Located::Raw(key));
        }
        match self.locate(parent)? {
            Located::Raw(key) if self.is_handed_on(key) => Some(Located::HandedOn),
            Located::Field(field) if self.model_of(field).is_none() => Some(Located::HandedOn),
            Located::HandedOn => Some(Located::HandedOn),
            _ => None,
        }
    }

    /// The model that reads the section at a path.
    pub fn model_at(&self, path: &str) -> Option<&Model> {
        match self.locate(path)? {
            Located::Section(model) => Some(model),
            Located::Field(field) => self.model_of(field),
            _ => None,
        }
    }

    /// The model behind a field that is a section.
    pub fn model_of(&self, field: &Field) -> Option<&Model> {
        let kind = match &field.kind {
            FieldType::Optional(inner) => inner.as_ref(),
            kind => kind,
        };
        match kind {
            FieldType::Model(name) => self.models.get(name),
            _ => None,
        }
    }

    /// Every path the version reads, as documentation writes it. `*` stands for a name the user
    /// chooses.
    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<String> = self.keys.iter().map(|key| key.path.clone()).collect();
        for section in self.sections.keys() {
            if self.raw_key(section).is_none() {
                paths.push(section.clone());
            }
            if let Some(model) = self.section_model(section) {
                self.add_fields(section, model, &mut paths);
            }
        }
        paths.sort_unstable();
        paths
    }

    fn add_fields(&self, section: &str, model: &Model, paths: &mut Vec<String>) {
        for field in &model.fields {
            let path = format!("{section}.{}", field.key());
            if let Some(inner) = self.model_of(field) {
                self.add_fields(&path, inner, paths);
            }
            paths.push(path);
        }
    }

    /// Whether members that the loader does not ask for reach somebody all the same.
    fn is_handed_on(&self, key: &RawKey) -> bool {
        let is_sampling = key.path.starts_with("data_efficiency.data_sampling");
        !key.attributes.is_empty()
            || self.raw_members(&key.path).next().is_none()
            || is_sampling && self.behaviours.keeps_unknown_data_sampling_keys
    }
}

#[cfg(test)]
mod tests {
    use crate::schema::EngineVersion;

    use super::*;

    fn kind(path: &str) -> &'static str {
        match EngineVersion::NEWEST.schema().locate(path) {
            Some(Located::Section(_)) => "section",
            Some(Located::Field(_)) => "field",
            Some(Located::Raw(_)) => "raw",
            Some(Located::HandedOn) => "handed on",
            None => "unread",
        }
    }

    #[test]
    fn paths_lead_where_the_engine_looks() {
        for (path, expected) in [
            ("zero_optimization", "section"),
            ("zero_optimization.offload_param.device", "field"),
            ("zero_optimization.prefetch_bucket_size", "field"),
            ("zero_optimization.stage3_prefetch_bucket_size", "field"),
            ("zero_optimization.nonsense", "unread"),
            ("timers.throughput.enabled", "field"),
            ("aio", "raw"),
            ("aio.block_size", "raw"),
            ("aio.block_sise", "unread"),
            ("optimizer.params.lr", "handed on"),
            ("optimizer.parms", "unread"),
            ("pipeline.stages", "raw"),
            ("tensor_parallel.partition_config.layer_specs", "handed on"),
            ("memory_efficient_linear", "unread"),
            ("data_efficiency.data_sampling.dynamic_batching.metrics_path", "handed on"),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
    }

    #[test]
    fn every_listed_path_can_be_located_in_its_version() {
        for version in EngineVersion::all() {
            let schema = version.schema();
            for path in schema.paths() {
                assert!(schema.locate(&path).is_some(), "{version}: {path}");
            }
        }
    }
}
