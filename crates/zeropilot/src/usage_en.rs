//! What is wrong with the arguments, in English: clap's words, with the reasons of Rust's own readers said for people.

use std::io::{self, Write as _};

/// What readers of values say, and what is meant.
const REASONS: [(&str, &str); 5] = [
    ("invalid digit found in string", "write a positive whole number in digits, such as 4096"),
    (
        "cannot parse integer from empty string",
        "write a positive whole number in digits, such as 4096",
    ),
    ("number would be zero for non-zero type", "it must be above 0"),
    ("number too large to fit in target type", "it is too large"),
    ("invalid float literal", "not a number"),
];

/// Says what is wrong.
pub(crate) fn print(error: &clap::Error) -> io::Result<()> {
    let said = error.render();
    match REASONS.iter().find(|(reason, _)| said.to_string().contains(reason)) {
        Some((reason, meant)) => {
            let said = said.ansi().to_string().replace(reason, meant);
            anstream::stderr().write_all(said.as_bytes())
        }
        None => error.print(),
    }
}
