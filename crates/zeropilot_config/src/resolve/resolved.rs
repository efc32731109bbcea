//! What an accepted config became: every attribute of the engine's config object.
//!
//! The typed view of those that decide memory, traffic and time is in [`crate::settings`].

use crate::python::PyValue;
use crate::schema::{EngineVersion, FieldType, Model, RawKey};
use crate::syntax::{Member, Node, Value};

use super::Special;

/// A config as the engine holds it after loading.
#[derive(Debug, Clone)]
pub struct ResolvedConfig {
    version: EngineVersion,
    written: Vec<Member>,
    special: Special,
}

impl ResolvedConfig {
    pub(super) fn new(version: EngineVersion, members: &[Member], special: Special) -> Self {
        Self { version, written: members.to_vec(), special }
    }

    /// The engine that resolved it.
    pub fn version(&self) -> EngineVersion {
        self.version
    }

    /// `train_batch_size`: samples per optimizer step over all ranks.
    pub fn train_batch_size(&self) -> PyValue {
        self.value("train_batch_size")
    }

    /// `train_micro_batch_size_per_gpu`: samples one rank takes at once.
    pub fn micro_batch_size(&self) -> PyValue {
        self.value("train_micro_batch_size_per_gpu")
    }

    /// `gradient_accumulation_steps`: micro batches per optimizer step.
    pub fn gradient_accumulation_steps(&self) -> PyValue {
        self.value("gradient_accumulation_steps")
    }

    /// `zero_optimization` by the engine's field names, without what the engine derives from it.
    pub fn zero_optimization(&self) -> PyValue {
        let schema = self.version.schema();
        let mut zero = self.value("zero_config");
        if let Some(model) = schema.section_model("zero_optimization") {
            keep_fields(self.version, model, &mut zero);
        }
        zero
    }

    /// An attribute that is more than a copied value, by its name in the engine.
    pub(crate) fn value(&self, attribute: &str) -> PyValue {
        let found = self.special.iter().rev().find(|(name, _)| *name == attribute);
        let default = || {
            let defaults = &self.version.schema().resolved_defaults;
            defaults.get(attribute).map_or(PyValue::None, PyValue::from)
        };
        found.map_or_else(default, |(_, value)| value.clone())
    }

    /// One attribute of the engine's config object, by its name there.
    pub(crate) fn attribute(&self, attribute: &str) -> PyValue {
        if self.special.iter().any(|(name, _)| *name == attribute) {
            return self.value(attribute);
        }
        let schema = self.version.schema();
        let lands_there = |key: &&RawKey| key.attributes.iter().any(|place| place == attribute);
        let written =
            schema.keys.iter().filter(lands_there).find_map(|key| lookup(&self.written, &key.path));
        let default =
            || schema.resolved_defaults.get(attribute).map_or(PyValue::None, PyValue::from);
        written.map_or_else(default, PyValue::from)
    }

    /// Every attribute of the engine's config object, by its name there.
    pub fn attributes(&self) -> PyValue {
        let schema = self.version.schema();
        let defaults = schema.resolved_defaults.iter();
        let mut attributes =
            PyValue::Dict(defaults.map(|(key, value)| (key.clone(), value.into())).collect());
        for key in schema.keys.iter().filter(|key| !key.attributes.is_empty()) {
            if let Some(node) = lookup(&self.written, &key.path) {
                key.attributes
                    .iter()
                    .for_each(|attribute| set_path(&mut attributes, attribute, node.into()));
            }
        }
        for (attribute, value) in &self.special {
            set_path(&mut attributes, attribute, value.clone());
        }
        attributes
    }
}

/// Drops what is not a field of the model, or is left out when the engine prints it.
fn keep_fields(version: EngineVersion, model: &Model, section: &mut PyValue) {
    let PyValue::Dict(items) = section else { return };
    items.retain(|(name, _)| model.field(name).is_some_and(|field| !field.excluded));
    for (name, value) in items {
        let Some(field) = model.field(name) else { continue };
        let kind = match &field.kind {
            FieldType::Optional(inner) => inner.as_ref(),
            kind => kind,
        };
        if let FieldType::Model(nested) = kind
            && let Some(nested) = version.schema().models.get(nested)
        {
            keep_fields(version, nested, value);
        }
    }
}

fn lookup<'n>(members: &'n [Member], path: &str) -> Option<&'n Node> {
    let (first, rest) =
        path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let node = crate::judge::get(members, first)?;
    match (rest, &node.value) {
        (None, _) => Some(node),
        (Some(rest), Value::Object(members)) => lookup(members, rest),
        _ => None,
    }
}

/// Sets a dotted attribute; a path through something that is not a dictionary leads nowhere.
fn set_path(tree: &mut PyValue, path: &str, value: PyValue) {
    match path.split_once('.') {
        None => tree.set(path, value),
        Some((first, rest)) => {
            if let PyValue::Dict(items) = tree
                && let Some((_, inner)) = items.iter_mut().find(|(name, _)| name == first)
            {
                set_path(inner, rest, value);
            }
        }
    }
}
