//! The parameters of any model, from the headers of its safetensors files.
//!
//! A file begins with the length of its header (eight bytes, little-endian) and the header (JSON: for
//! each tensor its number format, its shape and the place of its data). Only that is read: no weight, no
//! pickle and no code of the model. The `safetensors` crate checks a header against the whole file, which
//! is not there when a header is fetched alone, so it is read here, with the same limits and checks.

mod compare;
mod header;
mod index;
mod stored;

pub use compare::{Comparison, Difference, compare};
pub use header::{
    Header, HeaderError, MOST_HEADER_BYTES, StoredTensor, header_length, parse_header,
};
pub use index::{INDEX_FILE, IndexError, SINGLE_FILE, ShardIndex};
pub use stored::StoredModel;
