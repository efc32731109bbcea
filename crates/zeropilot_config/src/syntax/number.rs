//! Number tokens to values, as Python's `int()` and `float()` convert them.
//!
//! Which characters form a token is the readers' business.

use num_bigint::BigInt;

use super::Value;
use super::error::SyntaxErrorKind;
use super::python_text::ascii_digit;

/// The longest integer, in digits, that Python converts from text.
pub const MAX_INT_DIGITS: usize = 4300;

/// The longest token handed to the standard float parser as it is. It caps exponents at a value
/// that only tokens with tens of thousands of digits could make meaningful again.
const PLAIN_FLOAT_LEN: usize = 1000;

/// Digits that can decide the rounding of a double; any later one only says "a little more".
const DECISIVE_DIGITS: usize = 800;

/// A run of text that has the form of a number.
#[derive(Debug, Clone, Copy)]
pub(super) struct NumberToken<'a> {
    /// The digits with sign, fraction and exponent.
    pub(super) text: &'a str,
    /// Whether it has a fraction or an exponent.
    pub(super) is_float: bool,
}

impl NumberToken<'_> {
    /// What Python's JSON reader makes of it.
    pub(super) fn json_value(self) -> Result<Value, SyntaxErrorKind> {
        if self.is_float { Ok(Value::Float(float(self.text))) } else { integer(self.text) }
    }

    /// What the Hjson reader makes of it: a small float without fraction becomes an integer, and
    /// trying that with an infinity is an `OverflowError`.
    pub(super) fn hjson_value(self) -> Result<Value, SyntaxErrorKind> {
        let translated;
        let text = if self.text.is_ascii() {
            self.text
        } else {
            translated = self.text.chars().map(|c| ascii_digit(c).unwrap_or(c)).collect::<String>();
            &translated
        };
        if !self.is_float {
            return integer(text);
        }
        let value = float(text);
        if value.is_infinite() {
            return Err(SyntaxErrorKind::NumberOverflow);
        }
        if value.fract() == 0.0 && value.abs() < 1e10 {
            return Ok(Value::Int(BigInt::from(value as i64)));
        }
        Ok(Value::Float(value))
    }
}

fn integer(text: &str) -> Result<Value, SyntaxErrorKind> {
    if text.len() <= 18
        && let Ok(small) = text.parse::<i64>()
    {
        return Ok(Value::Int(BigInt::from(small)));
    }
    let digits = text.trim_start_matches('-').len();
    if digits > MAX_INT_DIGITS {
        return Err(SyntaxErrorKind::TooManyDigits { digits, limit: MAX_INT_DIGITS });
    }
    text.parse().map(Value::Int).map_err(|_| SyntaxErrorKind::MalformedNumber)
}

fn float(text: &str) -> f64 {
    if text.len() <= PLAIN_FLOAT_LEN { plain_float(text) } else { plain_float(&shorten(text)) }
}

fn plain_float(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// An equally rounded number of bounded length.
fn shorten(text: &str) -> String {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let sign = if mantissa.starts_with('-') { "-" } else { "" };
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));

    let whole = whole.trim_start_matches('0');
    let significant_fraction =
        if whole.is_empty() { fraction.trim_start_matches('0') } else { fraction };
    let point = if whole.is_empty() {
        -length(fraction.len() - significant_fraction.len())
    } else {
        length(whole.len())
    };

    let digits = || whole.chars().chain(significant_fraction.chars());
    let mut kept: String = digits().take(DECISIVE_DIGITS).collect();
    if digits().skip(DECISIVE_DIGITS).any(|digit| digit != '0') {
        kept.push('1');
    }
    let exponent = point.saturating_add(saturating_exponent(exponent)).clamp(-9999, 9999);
    format!("{sign}0.{kept}0e{exponent}")
}

fn length(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn saturating_exponent(text: &str) -> i64 {
    let magnitude = text.bytes().filter(u8::is_ascii_digit).fold(0_i64, |value, digit| {
        value.saturating_mul(10).saturating_add(i64::from(digit - b'0'))
    });
    if text.starts_with('-') { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hjson(text: &str) -> Result<Value, SyntaxErrorKind> {
        NumberToken { text, is_float: text.contains(['.', 'e', 'E']) }.hjson_value()
    }

    #[test]
    fn small_whole_floats_become_integers_in_hjson() {
        assert_eq!(hjson("1e3"), Ok(Value::Int(1000.into())));
        assert_eq!(hjson("-0.0"), Ok(Value::Int(0.into())));
        assert_eq!(hjson("9999999999.0"), Ok(Value::Int(9_999_999_999_i64.into())));
        assert_eq!(hjson("1e10"), Ok(Value::Float(1e10)));
        assert_eq!(hjson("1e-5"), Ok(Value::Float(1e-5)));
        assert_eq!(hjson("1e999"), Err(SyntaxErrorKind::NumberOverflow));
    }

    #[test]
    fn digits_of_other_scripts_count() {
        assert_eq!(hjson("1٢٣"), Ok(Value::Int(123.into())));
        assert_eq!(hjson("1.٥"), Ok(Value::Float(1.5)));
    }

    #[test]
    fn integers_end_at_pythons_limit() {
        let longest = "9".repeat(MAX_INT_DIGITS);
        assert!(hjson(&longest).is_ok());
        assert!(hjson(&format!("-{longest}")).is_ok());
        assert_eq!(
            hjson(&format!("{longest}9")),
            Err(SyntaxErrorKind::TooManyDigits { digits: 4301, limit: 4300 })
        );
    }

    #[test]
    fn very_long_floats_round_as_short_ones() {
        let zeros = "0".repeat(700_000);
        assert_eq!(float(&format!("0.{zeros}12e700000")), 0.12);
        assert_eq!(float(&format!("-1{zeros}.5e-700000")), -1.0);
        assert_eq!(float(&format!("1{zeros}e0")), f64::INFINITY);
        assert_eq!(float(&format!("0.{zeros}")), 0.0);
        assert_eq!(float(&format!("1e-{zeros}2")), 0.01);
        assert_eq!(float(&format!("1e{}", "9".repeat(2000))), f64::INFINITY);
        // Exactly half way between two doubles, then a little more.
        let half = "9007199254740993";
        assert_eq!(float(&format!("{half}.{}", "0".repeat(2000))), 9_007_199_254_740_992.0);
        assert_eq!(float(&format!("{half}.{}1", "0".repeat(2000))), 9_007_199_254_740_994.0);
    }
}
