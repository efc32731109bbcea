//! Quantities that must not be mixed up, and how people write them.
//!
//! DeepSpeed's size keys count *elements*; memory is counted in *bytes*; guides confuse the two by a
//! factor of two or four. Here they are different types, and only an [`ElementSize`] leads from one
//! to the other. What a quantity is used for is not known here.

mod bytes;
mod elements;
mod estimate;
mod product;
mod scale;

pub use bytes::Bytes;
pub use elements::{ElementSize, Elements};
pub use estimate::Estimate;
pub use product::{Factor, Product, parse_product};
pub use scale::ParseQuantityError;
