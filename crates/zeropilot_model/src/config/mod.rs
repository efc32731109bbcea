//! Reading `config.json`: what is wrong with it, and typed access to what it says.
//!
//! A key that is not there has the default of the family's config class, and may be written by its
//! other names; both come from `knowledge/models/families.json`, which is extracted from transformers.

mod error;
mod facts;
mod reader;

pub use error::{ConfigError, ValueKind};
pub(crate) use facts::{ConfigFacts, ExpertNames, FamilyFacts, facts};
pub(crate) use reader::{MOST, Reader, Section, TEXT_CONFIG};
