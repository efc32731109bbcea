//! What this machine lacks for a config.
//!
//! With the feature `os`, `Machine::look` notes what is there.
//! [`Needs::of`] reads from a config what a run will ask of its machine. [`examine`] compares the two and gives
//! [`Finding`]s: what is missing, why it matters, what to type. How they look is decided elsewhere.

mod examine;
mod finding;
#[cfg(feature = "os")]
mod look;
mod machine;
mod needs;
mod packages;
mod words;

pub use examine::{Circumstances, examine};
pub use finding::Finding;
#[cfg(feature = "os")]
pub use look::extension_locks;
pub use machine::{Disk, ExtensionLock, Limit, Machine, Place, Space, Tools};
pub use needs::Needs;
pub use packages::{Package, Python};
