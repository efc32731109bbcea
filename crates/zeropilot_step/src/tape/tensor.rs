//! Tensor handles: a program variable is a handle, and dropping the handle drops the variable.

use super::Tape;
use super::graph::{Input, Target};
use super::trace::StorageId;

/// A tensor of a program: a counted reference to a storage, and where its gradient goes.
///
/// A handle lives exactly as long as the variable of the eager program it stands for.
#[derive(Debug)]
pub struct Tensor<'t> {
    pub(crate) tape: &'t Tape,
    pub(crate) storage: StorageId,
    pub(crate) target: Target,
    pub(crate) elements: u64,
    pub(crate) element_bytes: u8,
}

impl Clone for Tensor<'_> {
    fn clone(&self) -> Self {
        let mut core = self.tape.core.borrow_mut();
        core.retain(self.storage);
        core.refer(self.target);
        Self { ..*self }
    }
}

impl Drop for Tensor<'_> {
    fn drop(&mut self) {
        let mut core = self.tape.core.borrow_mut();
        core.release(self.storage);
        core.unrefer(self.target);
    }
}

impl<'t> Tensor<'t> {
    /// The tape this tensor lives on.
    #[must_use]
    pub fn tape(&self) -> &'t Tape {
        self.tape
    }

    /// Number of elements.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Bytes of one element.
    #[must_use]
    pub fn element_bytes(&self) -> u8 {
        self.element_bytes
    }

    /// Whether backward would compute a gradient for this tensor.
    #[must_use]
    pub fn needs_grad(&self) -> bool {
        self.target.wants()
    }

    pub(crate) fn input(&self) -> Input {
        Input {
            target: self.target,
            elements: self.elements,
            element_bytes: self.element_bytes,
            is_parameter: false,
        }
    }
}
