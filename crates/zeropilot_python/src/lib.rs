//! What `import zeropilot` calls: questions from Python's values to the crates that answer them, and answers back.
//!
//! Names, signatures and types are those of `python/zeropilot`; nothing is computed or worded here.

mod answer;
mod model;
mod problem;
mod verbs;

use pyo3::prelude::*;

/// The native part of zeropilot.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::answer::Answer;
    #[pymodule_export]
    use crate::problem::ZeropilotError;
    #[pymodule_export]
    use crate::verbs::{
        check, compare, create, diagnose, diff, explain, memory, plan, resolve, simulate, version,
    };
}
