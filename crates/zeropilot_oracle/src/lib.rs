//! What tests share that ask the real engine: where it is, how it is asked, and random questions that a seed repeats.
//!
//! It knows nothing of the crates that it tests.

mod base64;
mod environment;
mod random;
mod sample;
mod server;

pub use base64::base64;
pub use environment::{
    ConfigFile, corpus, engine_code, home, is_thorough, missing, programs, python, setting,
    surroundings,
};
pub use random::{Random, seed};
pub use sample::part_of;
pub use server::Oracle;
