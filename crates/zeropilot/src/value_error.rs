//! Why a value of an option is rejected.

use std::error::Error;
use std::fmt;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::str::ParseBoolError;

use zeropilot_ask::parsers::NumberError;
use zeropilot_ask::{MOST_TOKENS, NotAVersion, ScaleError, TokensError, UnknownCode};
use zeropilot_config::schema::{KNOWN_VERSIONS, UnknownVersion};
use zeropilot_text::{Language, Text, tr};
use zeropilot_units::ParseQuantityError;

/// Why a value is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueError {
    NotWhole,
    Zero,
    TooLarge,
    NotNumber,
    NotBool,
    /// What clap says of a range, such as `1..=3`.
    OutOfRange {
        range: String,
    },
    Quantity(ParseQuantityError),
    NotTime,
    NegativeTime,
    NoTime,
    NotTwoNumbers,
    UnknownRule {
        nearest: Option<&'static str>,
    },
    NotTokens,
    NotScale,
    NotEngine,
    NotVersion,
}

impl ValueError {
    /// What a reader of values reported, by its type.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        if let Some(error) = error.downcast_ref::<Self>() {
            return Some(error.clone());
        }
        if let Some(error) = error.downcast_ref::<ParseIntError>() {
            return match error.kind() {
                IntErrorKind::Empty | IntErrorKind::InvalidDigit => Some(Self::NotWhole),
                IntErrorKind::PosOverflow => Some(Self::TooLarge),
                IntErrorKind::Zero => Some(Self::Zero),
                _ => None,
            };
        }
        if error.is::<ParseFloatError>() {
            return Some(Self::NotNumber);
        }
        if error.is::<ParseBoolError>() {
            return Some(Self::NotBool);
        }
        if let Some(error) = error.downcast_ref::<TokensError>() {
            return Some(match error {
                TokensError::NotANumber => Self::NotTokens,
                TokensError::OutOfRange { .. } => {
                    Self::OutOfRange { range: format!("1..={MOST_TOKENS}") }
                }
            });
        }
        if let Some(error) = error.downcast_ref::<NumberError>() {
            return Some(match error {
                NumberError::NotANumber => Self::NotNumber,
                NumberError::NotAPair => Self::NotTwoNumbers,
            });
        }
        if let Some(UnknownCode(nearest)) = error.downcast_ref::<UnknownCode>() {
            return Some(Self::UnknownRule { nearest: *nearest });
        }
        if error.is::<ScaleError>() {
            return Some(Self::NotScale);
        }
        if error.is::<UnknownVersion>() {
            return Some(Self::NotEngine);
        }
        if error.is::<NotAVersion>() {
            return Some(Self::NotVersion);
        }
        error.downcast_ref::<ParseQuantityError>().cloned().map(Self::Quantity)
    }

    pub(crate) fn words(&self, language: Language) -> String {
        match self {
            Self::NotWhole => tr!(
                language,
                "write a positive whole number in digits, such as 4096",
                "应为正整数，只能写数字，例如 4096"
            ),
            Self::Zero => tr!(language, "the value must be greater than 0", "必须大于 0"),
            Self::TooLarge => tr!(language, "the value is too large", "数值太大"),
            Self::NotNumber => tr!(language, "not a number", "不是数字"),
            Self::NotBool => {
                tr!(language, "write `true` or `false`", "只能是 `true` 或 `false`")
            }
            Self::OutOfRange { range } => {
                tr!(language, "the value must be in the range {range}", "应在 {range} 范围内")
            }
            Self::Quantity(ParseQuantityError::NoNumber(text)) => tr!(
                language,
                "`{text}` must start with a number, such as `512GiB`",
                "`{text}` 应以数字开头，例如 `512GiB`"
            ),
            Self::Quantity(ParseQuantityError::UnknownUnit { unit, known }) => {
                let known = known.replace(", ", Text::new(", ", "、").get(language));
                tr!(
                    language,
                    "`{unit}` is not a unit; known units: {known}",
                    "`{unit}` 不是单位；可用的单位：{known}"
                )
            }
            Self::Quantity(ParseQuantityError::OutOfRange(text)) => tr!(
                language,
                "`{text}` is not a whole number of units between 0 and 2^63",
                "`{text}` 换算后应为 0 到 2^63 之间的整数"
            ),
            Self::NotTime => tr!(
                language,
                "not a time; write a value such as `90s`, `10m` or `1h`",
                "不是时间，请写成 `90s`、`10m` 或 `1h`"
            ),
            Self::NegativeTime => tr!(language, "a time cannot be negative", "时间不能是负数"),
            Self::NoTime => tr!(
                language,
                "after no time at all, every run would count as hung; write a value such as `10m`, or `off` for never",
                "时间为零，任何运行都会被当作卡住；请写成 `10m`，或用 `off` 关闭"
            ),
            Self::NotTwoNumbers => {
                tr!(language, "write two numbers separated by a comma", "应为用逗号隔开的两个数")
            }
            Self::UnknownRule { nearest: Some(nearest) } => tr!(
                language,
                "there is no such rule; did you mean {nearest}?",
                "没有这条规则，是不是想写 {nearest}？"
            ),
            Self::UnknownRule { nearest: None } => tr!(
                language,
                "there is no such rule; `zeropilot rules` lists them",
                "没有这条规则，`zeropilot rules` 可列出全部"
            ),
            Self::NotTokens => tr!(
                language,
                "write a positive whole number, such as 4096 or 128k (k = 1024)",
                "应为正整数，例如 4096 或 128k（k = 1024）"
            ),
            Self::NotEngine => {
                let known = KNOWN_VERSIONS.join(Text::new(", ", "、").get(language));
                tr!(
                    language,
                    "not a DeepSpeed version; known versions: {known}",
                    "不是 DeepSpeed 版本；已知版本：{known}"
                )
            }
            Self::NotVersion => {
                tr!(language, "not a version such as 4.44.2", "不是 4.44.2 这样的版本号")
            }
            Self::NotScale => tr!(
                language,
                "write the smallest and the largest number of GPUs, such as 8..1024",
                "应写成最少和最多的卡数，例如 8..1024"
            ),
        }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words(Language::English))
    }
}

impl Error for ValueError {}
