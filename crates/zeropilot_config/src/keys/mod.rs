//! What each key of a config does, in words, and what the schemas know about it.
//!
//! [`find`] takes a name as a person types it. [`text`] gives the words, [`history`] what the known
//! engine versions say, and [`annotate`] both for every key of a file. How it looks on a screen is
//! not known here.

mod annotate;
mod history;
mod lookup;
mod members;
mod mesh;
mod text;

pub use annotate::{Annotation, Status, annotate};
pub use history::{Facts, Presence, Takes, history, presence};
pub use lookup::{Found, canonical, find};
pub use members::members;
pub use mesh::builds_mesh;
pub use text::{Claim, KeyText, Needs, NoCost, Unit, Words};

/// The text about a key, by the path under which it is kept; see [`find`] and [`canonical`].
pub fn text(path: &str) -> Option<&'static KeyText> {
    text::texts().get(path)
}

/// Every key that has a text, in order of its path.
pub fn all() -> impl Iterator<Item = (&'static str, &'static KeyText)> {
    text::texts().iter().map(|(path, text)| (path.as_ref(), text))
}
