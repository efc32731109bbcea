//! The tree of modules that holds a model's parameters.
//!
//! A [`Module`] has parameters of its own and named children, in the order PyTorch keeps them, so a
//! walk through the tree gives `named_modules` and `named_parameters`. Equal layers are one child with
//! a count: a model of 126 layers costs what a model of one layer costs. Modules without a parameter in
//! or below them (activations, dropouts, rotary tables) are left out.

mod child;
mod count;
mod module;
mod rewrite;
mod walk;

pub use child::{Child, ChildName};
pub use count::{Count, TooManyElements};
pub use module::{Module, ModuleKind, Parameter, TieGroup};
pub(crate) use rewrite::{Rewriter, rewrite};
pub use walk::{ModuleEntry, Modules, ParameterEntry, Parameters};
