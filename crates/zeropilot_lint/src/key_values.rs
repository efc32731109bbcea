//! What every key became, as far as that is known before the script runs.

use zeropilot_config::python::PyValue;
use zeropilot_config::resolve::{ResolvedConfig, ValuesByKey};

/// An accepted config, asked key by key.
#[derive(Debug, Clone)]
pub struct KeyValues {
    config: ResolvedConfig,
    /// Keys whose values only the running script decides.
    open: Vec<String>,
}

impl KeyValues {
    pub(crate) fn new(config: ResolvedConfig, open: Vec<String>) -> Self {
        Self { config, open }
    }

    /// The config as the engine holds it; a key that only the running script decides has its default here.
    pub fn config(&self) -> &ResolvedConfig {
        &self.config
    }

    /// Whether only the running script decides.
    pub fn is_open(&self, path: &str) -> bool {
        is_open(&self.open, path)
    }

    /// The values, laid out for asking. Costs a walk over the whole config.
    pub fn table(&self) -> KeyTable<'_> {
        KeyTable { values: self.config.by_key(), open: &self.open }
    }
}

/// Values by key.
#[derive(Debug, Clone)]
pub struct KeyTable<'a> {
    values: ValuesByKey,
    open: &'a [String],
}

impl KeyTable<'_> {
    /// What the key at a dotted path is, written or not; `None` if only the running script decides
    /// or the engine keeps no value of its own for it.
    pub fn get(&self, path: &str) -> Option<&PyValue> {
        if self.is_open(path) { None } else { self.values.get(path) }
    }

    /// Whether only the running script decides.
    pub fn is_open(&self, path: &str) -> bool {
        is_open(self.open, path)
    }
}

/// Whether a key is open, or a section that it is in.
fn is_open(open: &[String], path: &str) -> bool {
    open.iter().any(|open| is_within(path, open))
}

/// Whether a path is another, or leads into the section that this one is.
pub(crate) fn is_within(path: &str, section: &str) -> bool {
    path.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
