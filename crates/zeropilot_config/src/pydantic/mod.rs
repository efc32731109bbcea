//! Section models as pydantic reads them: conversion, bounds, unknown keys, deprecated moves.
//!
//! Both generations are here because engines up to 0.14 use pydantic 1 and later ones pydantic 2,
//! and they disagree: `1.5` for a whole number is cut to 1 by the first and refused by the second.
//! Which section has which fields is known in [`crate::schema`]; checks between fields are in
//! `checks`.

mod checks;
mod coerce;
mod model;
mod pydantic1;
mod pydantic2;

pub(crate) use model::{read_model, read_section};
