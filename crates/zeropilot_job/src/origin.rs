//! Where a value comes from.

/// Who said a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file of the job.
    File {
        /// The file, as the job names it.
        name: String,
        /// The line, counted from 1.
        line: usize,
    },
    /// A framework uses it where the job says nothing.
    FrameworkDefault {
        /// The release in which that was read.
        version: &'static str,
    },
    /// It is installed on this machine.
    Installed {
        /// Where.
        place: String,
    },
    /// The user, by an option.
    Option,
    /// Nobody: zeropilot assumes it.
    Assumed,
}

/// A value with who said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Who said it.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// The same origin with another value.
    pub fn map<U>(self, other: impl FnOnce(T) -> U) -> Sourced<U> {
        Sourced { value: other(self.value), origin: self.origin }
    }
}
