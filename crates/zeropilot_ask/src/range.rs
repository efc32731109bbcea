//! Numbers that make sense.

/// A number that makes none.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{name}` is {value}, but must be between {least} and {most}")]
pub struct OutOfRange {
    /// The argument.
    pub name: &'static str,
    /// What was given.
    pub value: u64,
    /// The least it can be.
    pub least: u64,
    /// The most.
    pub most: u64,
}

/// A number from `least` to `most`.
pub(crate) fn within(
    name: &'static str,
    value: u64,
    least: u64,
    most: u64,
) -> Result<(), OutOfRange> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(OutOfRange { name, value, least, most })
}
