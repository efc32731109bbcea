//! Python's view of a value: truth, equality, numbers and the parsing built into `int()` and `float()`.
//!
//! Engine and front ends read a config with ordinary Python code, so whether `"8"` is a number, `2.0`
//! equals `2` or `""` is true decides what happens to a run. Only those rules live here; which rule
//! applies to which key is known in [`crate::resolve`], [`crate::front_end`] and `pydantic`.

mod equality;
mod kind;
mod number;
mod text;
mod value;

pub use equality::{python_equal, same};
pub use kind::{Kind, is_auto, is_hashable, is_true, kind_of, python_type, reads_as_true};
pub use number::Number;
pub use text::{float_repr, parse_float, parse_int, python_str};
pub use value::PyValue;
