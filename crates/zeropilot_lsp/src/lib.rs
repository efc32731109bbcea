//! A language server for DeepSpeed configs.
//!
//! [`serve`] speaks the Language Server Protocol over standard input and output. A [`Session`] is the same without the
//! streams: what an editor says goes in, what it is to be told comes out. What is true about a config is decided in the
//! crates below; here it is only put where an editor wants it.

mod actions;
mod completion;
mod diagnostics;
mod document;
mod hover;
mod options;
mod positions;
mod server;
mod session;

pub use options::Options;
pub use server::serve;
pub use session::Session;
