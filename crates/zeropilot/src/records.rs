//! Where records of runs are kept.

use std::path::PathBuf;

/// The directory of all records.
pub(crate) fn home() -> PathBuf {
    zeropilot_run::home(|name| std::env::var_os(name).map(PathBuf::from))
}
