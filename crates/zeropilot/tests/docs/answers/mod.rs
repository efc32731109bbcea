//! What is generated from the shapes of answers: Python's classes, the page's types, tables of the reference.

mod kind;
pub(crate) mod python;
pub(crate) mod reference;
pub(crate) mod typescript;
