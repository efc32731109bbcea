//! `5x44GB`, `4x8xH100`: how people write a number of machines times a number of cards.

use std::ops::Range;

/// Factors in front of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product<'a> {
    /// The factors, outermost first.
    pub factors: Vec<Factor>,
    /// What is multiplied.
    pub of: &'a str,
    /// Where that stands in the text.
    pub at: Range<usize>,
}

/// A number before a `x`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    /// The number; the largest of 64 bits if it has more.
    pub value: u64,
    /// Where its digits stand in the text.
    pub at: Range<usize>,
}

/// What may stand between a factor and what it multiplies. The last two are how Chinese counts cards: `8卡A100`.
const TIMES: [char; 6] = ['x', 'X', '×', '*', '卡', '张'];

/// Takes leading `N x` off a text.
pub fn parse_product(text: &str) -> Product<'_> {
    let mut factors = Vec::new();
    let text_end = text.trim_end().len();
    let mut start = text_end - text.trim().len();
    while let Some((factor, after)) = leading_factor(text, start..text_end) {
        factors.push(factor);
        start = after;
    }
    Product { factors, of: &text[start..text_end], at: start..text_end }
}

/// The factor at the start of this part of the text, and where what it multiplies begins.
fn leading_factor(text: &str, part: Range<usize>) -> Option<(Factor, usize)> {
    let rest = &text[part.clone()];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let after = rest[digits..].trim_start().strip_prefix(TIMES)?.trim_start();
    let factor = Factor {
        value: rest[..digits].parse().unwrap_or(u64::MAX),
        at: part.start..part.start + digits,
    };
    (!after.is_empty()).then_some((factor, part.end - after.len()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn factors_stand_before_the_name() {
        let cases: [(&str, &[u64], &str); 8] = [
            ("5x44GB", &[5], "44GB"),
            ("4x8xH100", &[4, 8], "H100"),
            (" 8 × A100-80G ", &[8], "A100-80G"),
            ("H100", &[], "H100"),
            ("2 * 24 GB", &[2], "24 GB"),
            ("8x", &[], "8x"),
            ("8卡A800", &[8], "A800"),
            ("99999999999999999999xT4", &[u64::MAX], "T4"),
        ];
        for (text, factors, of) in cases {
            let product = parse_product(text);
            let values: Vec<u64> = product.factors.iter().map(|factor| factor.value).collect();
            assert_eq!((values.as_slice(), product.of), (factors, of), "{text}");
            assert_eq!(&text[product.at], of);
        }
    }

    proptest! {
        #[test]
        fn every_part_knows_its_place(text in "[ 0-9x×*卡A-H]{0,12}|\\PC{0,12}") {
            let product = parse_product(&text);
            prop_assert_eq!(&text[product.at.clone()], product.of);
            for factor in &product.factors {
                let digits = &text[factor.at.clone()];
                prop_assert!(digits.bytes().all(|byte| byte.is_ascii_digit()));
                prop_assert!(factor.at.end <= product.at.start);
            }
        }
    }
}
