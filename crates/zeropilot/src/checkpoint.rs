//! A checkpoint on disk: the names of its files.

use std::fs;
use std::io;
use std::path::Path;

use zeropilot_lint::Checkpoint;

/// What the names in a directory tell, and those in the one its `latest` points to.
pub(crate) fn open(directory: &Path) -> io::Result<Option<Checkpoint>> {
    let mut names = names_in(directory)?;
    if let Ok(tag) = fs::read_to_string(directory.join("latest")) {
        names.extend(names_in(&directory.join(tag.trim())).unwrap_or_default());
    }
    Ok(Checkpoint::from_names(names.iter().map(String::as_str)))
}

fn names_in(directory: &Path) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(directory)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}
