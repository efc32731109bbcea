//! The DeepSpeed config language.
//!
//! [`syntax`] reads the text a person wrote, with the place of everything in it. [`schema`] knows
//! what each engine version reads. [`front_end`] fills `"auto"` as HF Trainer and accelerate do.
//! [`constructors`] knows what optimizers and schedulers take.
//! [`resolve`] gives the engine's verdict: accepted with every value resolved, or refused with every
//! reason, as [`problem`]s without words. [`settings`] is the typed view of what was resolved.
//! [`keys`] says what each key does, [`completion`] what can be written at a place.

pub mod completion;
pub mod constructors;
pub mod front_end;
#[cfg(feature = "fs")]
pub mod installed;
mod judge;
pub mod keys;
pub mod nearest;
pub mod packages;
pub mod problem;
mod pydantic;
pub mod python;
pub mod resolve;
pub mod schema;
pub mod settings;
pub mod syntax;
