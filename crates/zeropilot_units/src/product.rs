//! `5x44GB`, `4x8xH100`: how people write a number of machines times a number of cards.

/// Factors in front of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product<'a> {
    /// The factors, outermost first.
    pub factors: Vec<u64>,
    /// What is multiplied.
    pub of: &'a str,
}

/// Takes leading `N x` (also `×` and `*`) off a text.
pub fn parse_product(text: &str) -> Product<'_> {
    let mut factors = Vec::new();
    let mut rest = text.trim();
    while let Some((factor, after)) = leading_factor(rest) {
        factors.push(factor);
        rest = after;
    }
    Product { factors, of: rest }
}

fn leading_factor(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let factor = text[..digits].parse().ok()?;
    let rest = text[digits..].trim_start();
    let after = rest.strip_prefix(['x', 'X', '×', '*'])?.trim_start();
    (!after.is_empty()).then_some((factor, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_stand_before_the_name() {
        let cases: [(&str, &[u64], &str); 6] = [
            ("5x44GB", &[5], "44GB"),
            ("4x8xH100", &[4, 8], "H100"),
            ("8 × A100-80G", &[8], "A100-80G"),
            ("H100", &[], "H100"),
            ("2 * 24 GB", &[2], "24 GB"),
            ("8x", &[], "8x"),
        ];
        for (text, factors, of) in cases {
            assert_eq!(parse_product(text), Product { factors: factors.to_vec(), of }, "{text}");
        }
    }
}
