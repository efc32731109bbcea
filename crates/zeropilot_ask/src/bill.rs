//! What is to be finished, and at what price, as people write it: `10B` tokens at `2.5/gpu-hour`.

use serde::Deserialize;

/// What is to be finished, in words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(deny_unknown_fields)]
pub struct BillRequest {
    /// Estimate time and cost for this many training tokens, such as `10B` (10^10)
    #[cfg_attr(feature = "clap", arg(long, value_name = "N", required = false))]
    pub tokens: String,
    /// Set the price per GPU-hour, such as `2.5/gpu-hour`
    #[serde(default)]
    #[cfg_attr(feature = "clap", arg(long, value_name = "PRICE", requires = "tokens"))]
    pub cost: Option<String>,
}

/// What is to be finished.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bill {
    /// Tokens to train on.
    pub tokens: f64,
    /// Money for a GPU and hour, where it is known.
    pub per_gpu_hour: Option<f64>,
    /// The sign of the currency, where it was written.
    pub currency: Option<char>,
}

/// A text that is no amount of tokens, or no price.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{option}` cannot be parsed: {text}")]
pub struct BadBill {
    /// What the text was given for.
    pub option: &'static str,
    /// The text.
    pub text: String,
}

impl BillRequest {
    /// Reads it.
    ///
    /// # Errors
    ///
    /// If a text is no amount or no price.
    pub fn read(&self) -> Result<Bill, BadBill> {
        let bad = |option, text: &str| BadBill { option, text: text.to_owned() };
        let tokens = amount(&self.tokens).ok_or_else(|| bad("tokens", &self.tokens))?;
        let per_gpu_hour = match &self.cost {
            Some(text) => Some(price(text).ok_or_else(|| bad("cost", text))?),
            None => None,
        };
        let currency = per_gpu_hour.and_then(|(_, currency)| currency);
        Ok(Bill { tokens, per_gpu_hour: per_gpu_hour.map(|(price, _)| price), currency })
    }
}

/// `2.5/gpu-hour`, `$2.5`, with the sign of its currency.
fn price(text: &str) -> Option<(f64, Option<char>)> {
    let text = text.split('/').next()?.trim();
    let currency = text.chars().next().filter(|sign| ['$', '€', '£', '¥', '￥'].contains(sign));
    let number = currency.map_or(text, |sign| &text[sign.len_utf8()..]).trim_start();
    let price = number.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0)?;
    Some((price, currency))
}

/// `10B`, `1.5T`, `300e9`.
fn amount(text: &str) -> Option<f64> {
    let text = text.trim();
    let letter = text.chars().last()?;
    let factor = match letter.to_ascii_uppercase() {
        'K' => 1e3,
        'M' => 1e6,
        'B' | 'G' => 1e9,
        'T' => 1e12,
        _ => 1.0,
    };
    let number = if factor > 1.0 { text.strip_suffix(letter)? } else { text };
    let amount = number.trim().parse::<f64>().ok()? * factor;
    (amount.is_finite() && amount > 0.0).then_some(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_prices_are_read_as_people_write_them() {
        assert_eq!(amount("10B"), Some(10e9));
        assert_eq!(amount("1.5 T"), Some(1.5e12));
        assert_eq!(amount("300e9"), Some(300e9));
        assert_eq!(amount("many"), None);
        assert_eq!(price("2.5/gpu-hour"), Some((2.5, None)));
        assert_eq!(price("$3"), Some((3.0, Some('$'))));
        assert_eq!(price("￥ 18.5/gpu-hour"), Some((18.5, Some('￥'))));
        assert_eq!(price("free"), None);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        let request = BillRequest { tokens: "10B".to_owned(), cost: Some("free".to_owned()) };
        let bad = request.read().expect_err("no price");
        assert_eq!((bad.option, bad.text.as_str()), ("cost", "free"));
    }
}
