//! The engine versions we have asked, and which of them answers for a version we have not.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use super::Schema;

/// A version whose schema is known, from the list [`KNOWN_VERSIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineVersion(usize);

struct Known {
    name: &'static str,
    json: &'static str,
    schema: OnceLock<Schema>,
}

macro_rules! known {
    ($($name:ident = $version:literal),+ $(,)?) => {
        /// Known versions, oldest first.
        pub const KNOWN_VERSIONS: &[&str] = &[$($version),+];

        /// Their places in the list.
        #[allow(non_camel_case_types, reason = "the variants have the names of the constants")]
        enum Place { $($name),+ }

        /// Each by its minor release, to compare with.
        #[allow(missing_docs, reason = "the names need no description")]
        impl EngineVersion {
            $(pub const $name: Self = Self(Place::$name as usize);)+
        }

        static KNOWN: [Known; KNOWN_VERSIONS.len()] = [$(Known {
            name: $version,
            json: const { zeropilot_knowledge::text(concat!("schema/", $version, ".json")) },
            schema: OnceLock::new(),
        }),+];
    };
}

known!(
    V0_14 = "0.14.5",
    V0_15 = "0.15.4",
    V0_16 = "0.16.9",
    V0_17 = "0.17.6",
    V0_18 = "0.18.9",
    V0_19 = "0.19.8",
);

/// A version text that cannot be placed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a DeepSpeed version; known versions are {known}", known = KNOWN_VERSIONS.join(", "))]
pub struct UnknownVersion(pub String);

impl EngineVersion {
    /// The newest known version.
    pub const NEWEST: Self = Self(KNOWN_VERSIONS.len() - 1);

    /// All known versions, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..KNOWN.len()).map(Self)
    }

    /// Its name, such as `0.19.8`.
    pub fn name(self) -> &'static str {
        KNOWN[self.0].name
    }

    /// What it reads.
    pub fn schema(self) -> &'static Schema {
        let known = &KNOWN[self.0];
        known.schema.get_or_init(|| {
            // The files are part of the program and a test reads them all.
            serde_json::from_str(known.json)
                .unwrap_or_else(|error| panic!("knowledge/schema/{}.json: {error}", known.name))
        })
    }

    /// The known version that stands for any version text: the newest one that is not newer, within
    /// the same minor release if possible; the oldest one for anything older.
    pub fn nearest(text: &str) -> Result<Self, UnknownVersion> {
        let wanted = parse(text).ok_or_else(|| UnknownVersion(text.to_owned()))?;
        let same_minor = Self::all().rev().find(|known| {
            parse(known.name()).is_some_and(|[major, minor, _]| [major, minor] == wanted[..2])
        });
        let not_newer = || {
            Self::all().rev().find(|known| parse(known.name()).is_some_and(|known| known <= wanted))
        };
        Ok(same_minor.or_else(not_newer).unwrap_or(Self(0)))
    }
}

/// The first three numbers of a version, ignoring suffixes such as `+cu124` or `rc1`.
fn parse(text: &str) -> Option<[u32; 3]> {
    let mut numbers = [0; 3];
    let core = text.trim().trim_start_matches('v').split(['+', '-']).next()?;
    for (index, part) in core.split('.').take(3).enumerate() {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        numbers[index] = digits.parse().ok()?;
    }
    Some(numbers)
}

impl FromStr for EngineVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::nearest(text)
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_file_reads_and_names_its_version() {
        for version in EngineVersion::all() {
            assert_eq!(version.schema().deepspeed, version.name());
        }
    }

    #[test]
    fn a_version_is_compared_by_its_minor_release() {
        assert_eq!(EngineVersion::V0_14.name(), "0.14.5");
        assert_eq!(EngineVersion::V0_19, EngineVersion::NEWEST);
        assert!(EngineVersion::V0_17 < EngineVersion::V0_18);
    }

    #[test]
    fn an_unlisted_version_is_answered_by_its_nearest_relative() {
        for (text, expected) in [
            ("0.19.8", "0.19.8"),
            ("0.19.1", "0.19.8"),
            ("0.16.0+cu124", "0.16.9"),
            ("v0.15", "0.15.4"),
            ("0.20.0", "0.19.8"),
            ("0.9.5", "0.14.5"),
            ("1.0", "0.19.8"),
        ] {
            assert_eq!(
                EngineVersion::nearest(text).map(EngineVersion::name),
                Ok(expected),
                "{text}"
            );
        }
        assert!(EngineVersion::nearest("latest").is_err());
    }
}
