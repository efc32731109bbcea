//! Paths as programs name them, made comparable.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// What a path means for whoever runs in a directory: absolute, without `.`, `..` and links, as far as it exists.
pub(crate) fn resolved(directory: &Path, path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::ParentDir => {
                // What `..` leaves may be a link.
                plain = fs::canonicalize(&plain).unwrap_or(plain);
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    let exists = plain.ancestors().find_map(|above| {
        let mut known = fs::canonicalize(above).ok()?;
        known.extend(plain.strip_prefix(above).ok()?);
        Some(known)
    });
    exists.unwrap_or(plain)
}

/// What a path means for whoever runs here.
pub fn resolved_here(path: &Path) -> PathBuf {
    resolved(&std::env::current_dir().unwrap_or_default(), path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_directory_has_one_path_however_it_is_spelled() {
        let directory = tempfile::tempdir().expect("a directory");
        let here = fs::canonicalize(directory.path()).expect("a path");
        fs::create_dir_all(here.join("runs/a")).expect("a directory");
        std::os::unix::fs::symlink(here.join("runs/a"), here.join("link")).expect("a link");
        for spelled in
            ["runs/a", "./runs/a", "runs/a/", "runs//a", "link", "runs/b/../a", "link/../a"]
        {
            assert_eq!(resolved(&here, Path::new(spelled)), here.join("runs/a"), "{spelled}");
        }
        let text = resolved(&here, Path::new("runs/a/")).into_os_string();
        assert_eq!(text, here.join("runs/a").into_os_string(), "names are built from it");
        assert_eq!(resolved(&here, &here.join("runs/a")), here.join("runs/a"));
        assert_eq!(resolved(&here, Path::new("link/new")), here.join("runs/a/new"));
        assert_ne!(resolved(&here, Path::new("runs")), here.join("runs/a"));
    }
}
