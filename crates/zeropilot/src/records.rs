//! Where records of runs are kept.

use std::path::{Path, PathBuf};

use zeropilot_text::Language;
use zeropilot_view::talk;

/// The directory of all records.
pub(crate) fn home() -> PathBuf {
    zeropilot_run::home(|name| std::env::var_os(name).map(PathBuf::from))
}

/// The directory that the user names, which must be there, or that of all records, which need not.
pub(crate) fn named_or_home(named: Option<&Path>, language: Language) -> Result<PathBuf, String> {
    let Some(named) = named else { return Ok(home()) };
    std::fs::read_dir(named).map_err(|error| talk::cannot_read(named, error, language))?;
    Ok(named.to_owned())
}
