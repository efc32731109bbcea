//! Installed packages, read from their metadata. Nothing is imported: importing PyTorch takes seconds and can fail for
//! the very reasons that are looked for.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::packages::{Package, Python};

impl Python {
    /// The interpreter the user names, else that of the active environment, else the first on the path.
    pub fn find(
        named: Option<&Path>,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<Self> {
        let path = match named {
            Some(path) if path.is_dir() => Some(path.join("bin").join("python")),
            Some(path) => Some(path.to_owned()),
            None => active(environment).or_else(|| on_path(environment)),
        };
        let path = path.filter(|path| path.is_file())?;
        let directories = prefixes(&path).into_iter().flat_map(|prefix| directories(&prefix));
        let packages = directories.flat_map(|directory| packages(&directory)).collect();
        Some(Self { path, packages })
    }
}

fn active(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let prefix = environment("VIRTUAL_ENV").or_else(|| environment("CONDA_PREFIX"))?;
    let python = Path::new(&prefix).join("bin").join("python");
    python.is_file().then_some(python)
}

fn on_path(environment: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = environment("PATH")?;
    let all = || std::env::split_paths(&path);
    let named =
        |name: &str| all().map(|directory| directory.join(name)).find(|file| file.is_file());
    named("python3").or_else(|| named("python"))
}

/// The prefix as it stands if it is a virtual environment, else that of the file behind the link.
fn prefixes(python: &Path) -> Vec<PathBuf> {
    let prefix = |python: &Path| python.parent()?.parent().map(Path::to_owned);
    let own = prefix(python).filter(|prefix| prefix.join("pyvenv.cfg").is_file());
    match own {
        Some(own) => vec![own],
        None => {
            fs::canonicalize(python).ok().and_then(|python| prefix(&python)).into_iter().collect()
        }
    }
}

fn directories(prefix: &Path) -> Vec<PathBuf> {
    let versions = |library: PathBuf| {
        let entries = fs::read_dir(library).into_iter().flatten().flatten();
        let python =
            entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"));
        python.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let local = prefix.join("local").join("lib");
    let mut found: Vec<PathBuf> =
        versions(local).into_iter().chain(versions(prefix.join("lib"))).collect();
    found.sort();
    let both = |library: PathBuf| ["site-packages", "dist-packages"].map(|name| library.join(name));
    found.into_iter().flat_map(both).filter(|directory| directory.is_dir()).collect()
}

fn packages(directory: &Path) -> Vec<Package> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut found: Vec<Package> = entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(".dist-info"))
        .filter_map(|entry| read(&entry.path().join("METADATA"), directory))
        .collect();
    found.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    found
}

fn read(metadata: &Path, directory: &Path) -> Option<Package> {
    let text = fs::read_to_string(metadata).ok()?;
    let header = |key: &str| {
        text.lines().take_while(|line| !line.is_empty()).find_map(|line| line.strip_prefix(key))
    };
    let name = header("Name:")?.trim().to_lowercase().replace(['_', '.'], "-");
    let version = header("Version:")?.trim().to_owned();
    Some(Package { name, version, place: directory.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_their_metadata() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let packages = directory.path().join("lib/python3.12/site-packages");
        for (name, version) in
            [("torch", "2.7.1+cu126"), ("Deep_Speed.X", "0.16.4"), ("torch", "2.6.0")]
        {
            let metadata = packages.join(format!("{name}-{version}.dist-info"));
            fs::create_dir_all(&metadata).expect("directories");
            let text =
                format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: prose\n");
            fs::write(metadata.join("METADATA"), text).expect("a file");
        }
        fs::create_dir_all(directory.path().join("bin")).expect("directories");
        fs::write(directory.path().join("bin/python"), "").expect("a file");
        fs::write(directory.path().join("pyvenv.cfg"), "").expect("a file");
        let python = Python::find(Some(directory.path()), &|_| None).expect("an interpreter");
        assert_eq!(
            python.package("deep-speed-x").map(|found| found.version.as_str()),
            Some("0.16.4")
        );
        assert_eq!(python.all("torch").count(), 2);
        let active = |name: &str| (name == "VIRTUAL_ENV").then(|| directory.path().into());
        assert_eq!(Python::find(None, &active), Some(python));
        assert_eq!(Python::find(None, &|_| None), None);
    }
}
