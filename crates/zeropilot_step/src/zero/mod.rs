//! What ZeRO does to the memory of each rank.
//!
//! [`RestStates`] are the bytes between the phases of a step. Within a phase every part reports what it allocates,
//! frees and sends to a [`Sink`] in the order in which the engine does: [`initialize`] and [`optimizer_step`] alone,
//! [`gather::Gatherer`] and [`reduction::Reducer`] driven by the module events and gradients of a model's program.
//! A [`Ledger`] is the sink that knows the highest point and what made it up.
//!
//! Sizes follow from the engine's code and are exact; activations are not known here.

mod base_optimizer;
mod calls;
mod flat_layout;
mod frozen;
pub mod gather;
mod habits;
mod init;
mod ledger;
mod optimizer_step;
mod precision;
pub mod reduction;
mod rest;
mod run;
mod sink;
mod stage0;
mod stage12;
mod stage3;
mod swing;

pub use base_optimizer::BaseOptimizer;
pub use calls::optimizer_calls;
pub use flat_layout::{FlatLayout, OwnerRun};
pub use frozen::frozen_rest;
pub(crate) use frozen::weights as frozen_weights;
pub use habits::{NotFollowed, casts_adapters, flattens_on_device, not_followed};
pub use init::{init_peak, initialize};
pub use ledger::{Ledger, Moment, Stream};
pub use optimizer_step::{optimizer_step, step_peak};
pub use precision::{Dtypes, Wrapper};
pub use rest::{Category, Place, Rest, RestStates};
pub use run::{Backend, Engine, Loading, Parameter, Run};
pub use sink::{Collective, CollectiveKind, Direction, Handle, HostCopy, Resident, Sink};
pub use swing::Swing;
