//! The number of ranks, and who said so.

/// Where the number of ranks comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorldSource {
    /// The user said it.
    Given,
    /// It is the only one for which the batch sizes in the file multiply.
    Inferred,
    /// Nobody said it, and one is taken.
    Assumed,
}

impl WorldSource {
    /// Its name in machine formats.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Inferred => "inferred",
            Self::Assumed => "assumed",
        }
    }
}

/// The number of ranks a file was judged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct World {
    /// How many.
    pub size: usize,
    /// Who said so.
    pub source: WorldSource,
}

impl World {
    /// What the user said, or one rank.
    pub(crate) fn given_or_one(size: Option<usize>) -> Self {
        match size {
            Some(size) => Self { size, source: WorldSource::Given },
            None => Self { size: 1, source: WorldSource::Assumed },
        }
    }
}
