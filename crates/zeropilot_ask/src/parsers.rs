//! Readers of values on a command line.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use zeropilot_config::front_end::{FrontEnd, Number};
use zeropilot_plan::{OptimizerKind, Preset, SchedulerKind, Target};

use crate::wishes::NONE;

/// A text that is no number, or not as many as needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Not a number.
    #[error("not a number")]
    NotANumber,
    /// Not a pair.
    #[error("not two numbers separated by a comma")]
    NotAPair,
}

/// A number as Python would keep it.
///
/// # Errors
///
/// If the text is no finite number.
pub(crate) fn number(text: &str) -> Result<Number, NumberError> {
    if let Ok(whole) = text.parse::<i64>() {
        return Ok(Number::Int(whole));
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Number::Float(number)),
        _ => Err(NumberError::NotANumber),
    }
}

/// `0.9,0.95`.
pub(crate) fn pair(text: &str) -> Result<(f64, f64), NumberError> {
    let (first, second) = text.split_once(',').ok_or(NumberError::NotAPair)?;
    let number = |text: &str| text.trim().parse().map_err(|_| NumberError::NotAPair);
    Ok((number(first)?, number(second)?))
}

/// A program that reads configs.
pub(crate) fn target() -> impl TypedValueParser<Value = Target> {
    PossibleValuesParser::new(Target::ALL.map(Target::name)).try_map(|name| name.parse::<Target>())
}

/// A stage with its offload.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    PossibleValuesParser::new(Preset::ALL.map(Preset::name)).try_map(|name| name.parse::<Preset>())
}

/// An optimizer that DeepSpeed builds, or none.
pub(crate) fn optimizer() -> PossibleValuesParser {
    OptimizerKind::ALL.map(OptimizerKind::name).into_iter().chain([NONE]).into()
}

/// A schedule that DeepSpeed builds, or none.
pub(crate) fn scheduler() -> PossibleValuesParser {
    SchedulerKind::ALL.map(SchedulerKind::type_name).into_iter().chain([NONE]).into()
}

/// A framework on top of DeepSpeed.
pub fn front_end() -> impl TypedValueParser<Value = FrontEnd> {
    PossibleValuesParser::new(FrontEnd::ALL.map(FrontEnd::name))
        .try_map(|name| name.parse::<FrontEnd>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_their_kind() {
        assert_eq!(number("3"), Ok(Number::Int(3)));
        assert_eq!(number("5e-5"), Ok(Number::Float(5e-5)));
        assert!(number("nan").is_err() && number("x").is_err());
        assert_eq!(pair("0.9, 0.95"), Ok((0.9, 0.95)));
        assert_eq!(pair("0.9"), Err(NumberError::NotAPair));
    }
}
