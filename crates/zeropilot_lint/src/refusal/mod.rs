//! From a refusal to the rule that words it.
//!
//! The matches name every cause, so a cause that is new in `zeropilot_config` does not compile
//! until it has a rule.

mod engine;
mod front_end;
mod syntax;

pub(crate) use engine::explain as engine;
pub(crate) use front_end::explain as front_end;
pub(crate) use syntax::{duplicate_key, explain as syntax, not_for_others, not_strict};
