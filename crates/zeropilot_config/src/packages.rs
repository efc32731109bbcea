//! Installed packages and their versions, as far as they are known.

use std::cmp::Ordering;

/// The packages whose versions decide what a training run does.
pub const TRAINING_PACKAGES: [&str; 6] =
    ["deepspeed", "torch", "transformers", "accelerate", "peft", "trl"];

/// Versions by package; a package that is missing here is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packages(Vec<(String, String)>);

impl Packages {
    /// DeepSpeed alone, by its version.
    pub fn engine(version: &str) -> Self {
        Self::from_iter([("deepspeed", version)])
    }

    /// The version of a package.
    pub fn version(&self, package: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == package).map(|(_, version)| version.as_str())
    }

    /// Every package that is known.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, version)| (name.as_str(), version.as_str()))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Packages {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(all: I) -> Self {
        Self(all.into_iter().map(|(name, version)| (name.into(), version.into())).collect())
    }
}

/// A version that can be compared: its numbers, and whether it comes before the release of that number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    numbers: Vec<u64>,
    is_early: bool,
}

impl Release {
    /// Reads `2.13.0+cu126`, `5.0.0rc1` or `4.49.0.dev0`.
    pub fn parse(text: &str) -> Option<Self> {
        let core = text.trim().trim_start_matches('v').split('+').next()?;
        let mut numbers = Vec::new();
        let mut is_early = false;
        for part in core.split('.') {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = part.split_at(digits);
            match number.parse() {
                Ok(number) => numbers.push(number),
                Err(_) if numbers.is_empty() => return None,
                Err(_) => {}
            }
            if !rest.is_empty() {
                is_early = !rest.starts_with("post");
                break;
            }
        }
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        Some(Self { numbers, is_early })
    }

    /// Whether this version comes before a release; `None` if it is an early build of that very release, which may
    /// or may not have its changes.
    pub fn is_before(&self, release: &Self) -> Option<bool> {
        match self.numbers.cmp(&release.numbers) {
            Ordering::Less => Some(true),
            Ordering::Equal if self.is_early => None,
            _ => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let before = |one: &str, other: &str| {
            let release = |text| Release::parse(text).expect("a version");
            release(one).is_before(&release(other))
        };
        assert_eq!(before("0.9.10", "0.18.3"), Some(true));
        assert_eq!(before("0.18.3+cu126", "0.18.3"), Some(false));
        assert_eq!(before("2.13", "2.13.0"), Some(false));
        assert_eq!(before("5.0.0rc1", "5.0.0"), None);
        assert_eq!(before("4.49.0.dev0", "4.49.0"), None);
        assert_eq!(before("4.49.0.dev0", "4.48.0"), Some(false));
        assert_eq!(before("1.0.post1", "1.0"), Some(false));
        assert_eq!(Release::parse("latest"), None);
    }
}
