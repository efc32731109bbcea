//! One training step as a program, and what can be read off it.
//!
//! [`tape`] is an autograd tape that only knows storages. [`primitive`] is the vocabulary of
//! operations on it, [`family`] writes every model family as a short program in that vocabulary, and
//! [`head`] the losses, [`task`] those of several models. Running a family on a tape gives a [`tape::Trace`], the ordered list of
//! allocations, releases, gradients and module events that ZeRO and every other question listens to.
//! [`zero`] knows what the engine keeps on each rank, gathers, reduces and allocates on the way. Of a whole step
//! [`memory`] says what is alive, [`program`] what is done in which order, [`traffic`] adds
//! that up, and [`time`] runs it on a cluster. [`conformal`] says how far a prediction may be off.

pub mod conformal;
pub mod cuda;
pub mod family;
pub mod head;
pub mod lower;
pub mod memory;
pub mod micro_step;
pub mod model;
pub mod primitive;
pub mod program;
pub mod shape;
mod steady;
pub mod tape;
pub mod task;
pub mod time;
pub mod traffic;
pub mod zero;
