//! The engine that is installed, found by looking at files. Python is never run.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::{Packages, TRAINING_PACKAGES};
use crate::schema::EngineVersion;

/// An installed engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledEngine {
    /// The known engine nearest to it.
    pub engine: EngineVersion,
    /// Its own version.
    pub version: String,
    /// The directory of its package.
    pub place: PathBuf,
    /// What is installed beside it, and itself.
    pub packages: Packages,
}

/// The engine of the active environment, or of the `python3` that a shell would run; `variable` reads the environment.
pub fn find(variable: impl Fn(&str) -> Option<OsString>) -> Option<InstalledEngine> {
    let active = variable("VIRTUAL_ENV").map(PathBuf::from);
    active.into_iter().chain(python_prefixes(variable("PATH"))).find_map(|prefix| within(&prefix))
}

/// The engine of a Python by its prefix.
pub fn within(prefix: &Path) -> Option<InstalledEngine> {
    package_directories(prefix).into_iter().find_map(|place| {
        let packages = packages_in(&place);
        let version = packages.version("deepspeed")?.to_owned();
        let engine = EngineVersion::nearest(&version).ok()?;
        Some(InstalledEngine { engine, version, place, packages })
    })
}

/// The prefix of the first `python3` on the path: as it stands if it is a virtual environment, then
/// that of the file behind the link.
fn python_prefixes(path: Option<OsString>) -> Vec<PathBuf> {
    let Some(path) = path else { return Vec::new() };
    let name = if cfg!(windows) { "python.exe" } else { "python3" };
    let python = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|python| python.is_file());
    let Some(python) = python else { return Vec::new() };
    let prefix = |python: &Path| python.parent()?.parent().map(Path::to_owned);
    let virtual_environment = prefix(&python).filter(|prefix| prefix.join("pyvenv.cfg").is_file());
    let behind = fs::canonicalize(&python).ok().and_then(|python| prefix(&python));
    virtual_environment.into_iter().chain(behind).collect()
}

/// Where a prefix keeps its packages and the engine is among them.
fn package_directories(prefix: &Path) -> Vec<PathBuf> {
    let library = prefix.join("lib");
    let versions = fs::read_dir(&library).into_iter().flatten().flatten();
    let mut directories: Vec<PathBuf> = versions
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .flat_map(|entry| ["site-packages", "dist-packages"].map(|name| entry.path().join(name)))
        .collect();
    directories.push(prefix.join("Lib").join("site-packages"));
    directories.push(prefix.join("local").join("lib").join("python3").join("dist-packages"));
    directories.retain(|directory| directory.join("deepspeed").is_dir());
    directories.sort();
    directories
}

/// The versions in the metadata of the packages that training needs.
fn packages_in(directory: &Path) -> Packages {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name();
            let (name, _) = name.to_str()?.strip_suffix(".dist-info")?.split_once('-')?;
            let name = *TRAINING_PACKAGES.iter().find(|known| **known == name)?;
            let text = fs::read_to_string(entry.path().join("METADATA")).ok()?;
            let version = text.lines().find_map(|line| line.strip_prefix("Version:"))?;
            Some((name, version.trim().to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment_with(version: &str) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let packages = directory.path().join("lib/python3.11/site-packages");
        let metadata = packages.join(format!("deepspeed-{version}.dist-info"));
        fs::create_dir_all(&metadata).expect("directories");
        fs::create_dir_all(packages.join("deepspeed")).expect("directories");
        let text = format!("Metadata-Version: 2.1\nName: deepspeed\nVersion: {version}\n");
        fs::write(metadata.join("METADATA"), text).expect("a file");
        directory
    }

    #[test]
    fn the_active_environment_is_looked_at() {
        let directory = environment_with("0.16.4");
        let found = find(|name| (name == "VIRTUAL_ENV").then(|| directory.path().into()));
        let found = found.expect("an engine");
        assert_eq!((found.engine.name(), found.version.as_str()), ("0.16.9", "0.16.4"));
        assert_eq!(found.packages, Packages::engine("0.16.4"));
        assert_eq!(within(directory.path()), Some(found));
    }

    #[cfg(unix)]
    #[test]
    fn the_python_on_the_path_is_followed_to_its_prefix() {
        let directory = environment_with("0.18.0");
        let real = directory.path().join("bin");
        let links = directory.path().join("links/bin");
        fs::create_dir_all(&real).expect("directories");
        fs::create_dir_all(&links).expect("directories");
        fs::write(real.join("python3.11"), "").expect("a file");
        std::os::unix::fs::symlink(real.join("python3.11"), links.join("python3")).expect("a link");
        let found = find(|name| (name == "PATH").then(|| links.clone().into()));
        assert_eq!(found.map(|found| found.engine.name()), Some("0.18.9"));
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        assert_eq!(find(|_| None), None);
    }
}
