//! An interpreter and its packages, as data.

use std::path::PathBuf;

use zeropilot_config::packages::{Packages, TRAINING_PACKAGES};

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name, in lower case with dashes.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The directory that holds it.
    pub place: PathBuf,
}

/// An interpreter and its packages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Python {
    /// The program.
    pub path: PathBuf,
    /// Packages in the order in which the interpreter would look for them.
    pub packages: Vec<Package>,
}

impl Python {
    /// The package that would be imported.
    pub fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }

    /// The versions that training imports.
    pub fn training_packages(&self) -> Packages {
        let version = |name: &&'static str| Some((*name, self.package(name)?.version.clone()));
        TRAINING_PACKAGES.iter().filter_map(version).collect()
    }

    /// All versions of a package that lie about, the imported one first.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Package> {
        self.packages.iter().filter(move |package| package.name == name)
    }
}
