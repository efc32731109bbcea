//! Texts without the secrets that show by their shape: passwords in addresses, signatures, bearers and tokens.

use std::borrow::Cow;

use super::REMOVED;

/// What tokens of well-known services begin with, and how long the rest is at least.
const TOKENS: [(&str, usize); 12] = [
    ("hf_", 16),
    ("sk-", 16),
    ("ghp_", 16),
    ("gho_", 16),
    ("ghs_", 16),
    ("github_pat_", 16),
    ("glpat-", 16),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("AKIA", 16),
    ("wandb_v1_", 16),
    ("eyJ", 30),
];

/// What stands before a secret that ends with the word or the value.
const BEFORE: [&str; 9] = [
    "Bearer ",
    "bearer ",
    "X-Amz-Signature=",
    "X-Amz-Credential=",
    "X-Amz-Security-Token=",
    "Signature=",
    "access_token=",
    "&sig=",
    "?sig=",
];

/// The text with every secret that shows by its shape removed.
pub fn masked(text: &str) -> Cow<'_, str> {
    let is_suspect = text.contains("://")
        || BEFORE.iter().any(|before| text.contains(before))
        || TOKENS.iter().any(|(start, _)| text.contains(start));
    if !is_suspect {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_begun = clean.ends_with(is_of_token);
        match secret(rest, is_begun) {
            Some((kept, length)) => {
                clean.push_str(&rest[..kept]);
                clean.push_str(REMOVED);
                rest = &rest[kept + length..];
            }
            None => {
                clean.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Cow::Owned(clean)
}

/// A secret at the beginning of a text: what of it may stay, and how long the secret behind that is.
fn secret(text: &str, is_begun: bool) -> Option<(usize, usize)> {
    if let Some(address) = text.strip_prefix("://") {
        let end = address.find(|c: char| matches!(c, '/' | '?' | '"' | '\'') || c.is_whitespace());
        let host = &address[..end.unwrap_or(address.len())];
        let user = host.rfind('@')?;
        return Some(("://".len(), user));
    }
    let value = |from: usize| {
        let end = text[from..]
            .find(|c: char| matches!(c, '&' | '"' | '\'' | '\\' | ',') || c.is_whitespace());
        let length = end.unwrap_or(text.len() - from);
        (length > 0 && !text[from..].starts_with(REMOVED)).then_some((from, length))
    };
    if let Some(before) = BEFORE.iter().find(|before| text.starts_with(**before)) {
        return value(before.len());
    }
    let (start, least) = TOKENS.iter().find(|(start, _)| !is_begun && text.starts_with(start))?;
    let rest = &text[start.len()..];
    let length = rest.find(|c: char| !is_of_token(c)).unwrap_or(rest.len());
    (length >= *least).then_some((0, start.len() + length))
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_show_by_their_shape() {
        for (text, clean) in [
            ("git clone https://bob:PASS@host/x", "git clone https://[removed]@host/x"),
            (
                "https://s3/x?a=1&X-Amz-Signature=abc&b=2",
                "https://s3/x?a=1&X-Amz-Signature=[removed]&b=2",
            ),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [removed]"),
            ("token hf_abcdefghijklmnopqrstu in a log", "token [removed] in a log"),
            (r#"{"line":"sk-abcdefghijklmnopqrstu"}"#, r#"{"line":"[removed]"}"#),
        ] {
            assert_eq!(masked(text), clean);
            assert_eq!(masked(clean), clean);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "step 3 loss 2.5",
            "https://huggingface.co/meta-llama/Llama-3.1-8B",
            "hf_trainer.py --task-sk-learn --disk-cache",
            "user@host:/data",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
