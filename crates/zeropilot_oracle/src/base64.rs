//! Bytes as text, for config files that are not valid UTF-8.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The standard encoding, padded.
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3)
            .fold(0_usize, |bits, at| bits << 8 | group.get(at).copied().map_or(0, usize::from));
        for digit in 0..4 {
            let index = bits >> (18 - 6 * digit) & 63;
            out.push(if digit <= group.len() { char::from(DIGITS[index]) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn texts_of_rfc_4648() {
        let told =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(told, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }
}
