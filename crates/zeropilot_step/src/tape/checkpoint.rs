//! Non-reentrant checkpointing: count what a layer would save, and re-run it in backward.

use super::Tape;
use super::core::{Argument, Frame, Packing};
use super::tensor::Tensor;

/// A program whose checkpointed parts can be run again.
pub trait Rerun {
    /// Run part `key` again with the arguments it was first given: its output, where it has a single one.
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>>;
}

/// A program without checkpointed parts.
#[derive(Debug, Clone, Copy)]
pub struct NoRerun;

impl Rerun for NoRerun {
    fn rerun<'t>(&self, _key: u32, _arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        None
    }
}

impl Tape {
    /// Run `body` as the checkpointed part `key`: it saves nothing, but holds its arguments.
    pub fn checkpoint<'t, R>(
        &'t self,
        key: u32,
        arguments: Vec<Tensor<'t>>,
        body: impl FnOnce(Vec<Tensor<'t>>) -> R,
    ) -> R {
        let frame = self.open_frame(key, &arguments);
        let result = body(arguments);
        let mut core = self.core.borrow_mut();
        core.packing = Packing::Keep;
        if core.frames[frame as usize].open == 0 {
            core.release_arguments(frame);
        }
        drop(core);
        result
    }

    /// Run `body` as the part `key` of a program, checkpointed or not.
    pub fn part<'t, R>(
        &'t self,
        key: u32,
        is_checkpointed: bool,
        arguments: Vec<Tensor<'t>>,
        body: impl FnOnce(&[Tensor<'t>]) -> R,
    ) -> R {
        if is_checkpointed {
            self.checkpoint(key, arguments, |arguments| body(&arguments))
        } else {
            body(&arguments)
        }
    }

    fn open_frame(&self, key: u32, arguments: &[Tensor<'_>]) -> u32 {
        let mut core = self.core.borrow_mut();
        let held = arguments.iter().map(|tensor| {
            core.retain(tensor.storage);
            core.refer(tensor.target);
            Argument {
                storage: tensor.storage,
                elements: tensor.elements,
                element_bytes: tensor.element_bytes,
                target: tensor.target,
            }
        });
        let arguments = held.collect();
        // A model has few enough layers that their number fits any integer.
        #[allow(clippy::cast_possible_truncation)]
        let frame = core.frames.len() as u32;
        core.frames.push(Frame { key, arguments, ..Frame::default() });
        core.packing = Packing::Count { frame };
        frame
    }

    /// Re-run the layer of `frame`, restoring every slot it counted.
    pub(super) fn restore(&self, frame: u32, program: &dyn Rerun) {
        let (key, arguments) = {
            let mut core = self.core.borrow_mut();
            core.packing = Packing::Restore { frame };
            let state = &mut core.frames[frame as usize];
            state.is_restored = true;
            (state.key, state.arguments.clone())
        };
        let arguments = arguments.into_iter().map(|argument| self.handle(argument)).collect();
        drop(program.rerun(key, arguments));
        self.core.borrow_mut().packing = Packing::Keep;
    }

    fn handle(&self, argument: Argument) -> Tensor<'_> {
        let mut core = self.core.borrow_mut();
        core.retain(argument.storage);
        core.refer(argument.target);
        Tensor {
            tape: self,
            storage: argument.storage,
            target: argument.target,
            elements: argument.elements,
            element_bytes: argument.element_bytes,
        }
    }
}
