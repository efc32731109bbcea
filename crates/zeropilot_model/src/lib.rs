//! Models as transformers builds them: which parameters there are, in which modules, in which order.
//!
//! [`Model::from_config`] reads a `config.json` and gives the [`architecture`] of the class that
//! transformers would build: names, shapes, ties and order are those of its `named_parameters`.
//! Where it does not know the `model_type`, a similar structure stands in and says so ([`Names::Likeness`]).
//! [`catalogue`] knows published models by the names people type. [`safetensors`] reads the parameters
//! of any model from file headers. [`lora`] wraps a model as PEFT does. With the feature `fs` the
//! `local` module reads directories, with `hub` the `hub` module finds a repository and `source` the model a
//! person means by a name.
//!
//! Nothing here knows how a model is trained.

pub mod architecture;
pub mod catalogue;
pub mod config;
mod dimensions;
mod dtype;
mod family;
mod from_config;
#[cfg(feature = "hub")]
pub mod hub;
pub mod image;
mod likeness;
mod live;
#[cfg(feature = "fs")]
pub mod local;
pub mod lora;
mod model;
mod nearest;
mod part;
pub mod quantization;
mod reward;
pub mod safetensors;
mod settings;
#[cfg(feature = "hub")]
pub mod source;

pub use config::ConfigError;
pub use dimensions::{Dimensions, Experts};
pub use dtype::Dtype;
pub use family::Family;
pub use likeness::{CountedFrom, ErrorRange, Sizes, StandInClass};
pub use live::LiveParameter;
pub use model::{Model, Names, Weights};
pub use part::{Part, PartKind};
pub use settings::Settings;
