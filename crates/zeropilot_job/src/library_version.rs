//! Releases of transformers and TRL, as far as they differ.

use std::fmt;
use std::str::FromStr;

/// A release of transformers or TRL, as far as they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LibraryVersion {
    major: u32,
    minor: u32,
}

impl LibraryVersion {
    /// A release by its first two numbers.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Whether this TRL prepares frozen models with the config's `optimizer` section, which 1.10 takes out.
    pub fn leaves_optimizer_to_frozen(self) -> bool {
        self < Self::new(1, 10)
    }
}

/// A text that is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a version such as 4.44.2")]
pub struct NotAVersion(String);

impl FromStr for LibraryVersion {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || NotAVersion(text.to_owned());
        let mut parts = text.trim().trim_start_matches('v').split('.');
        let mut number = || parts.next().and_then(|part| part.parse().ok());
        let major = number().ok_or_else(wrong)?;
        let minor = number().unwrap_or(0);
        Ok(Self { major, minor })
    }
}

impl fmt::Display for LibraryVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trl_takes_the_optimizer_out_from_1_10_on() {
        let leaves = |text: &str| {
            text.parse::<LibraryVersion>().expect("a version").leaves_optimizer_to_frozen()
        };
        assert!(leaves("0.24.0") && leaves("1.9.0"));
        assert!(!leaves("1.10") && !leaves("2"));
        assert!("newest".parse::<LibraryVersion>().is_err());
    }
}
