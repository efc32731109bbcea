//! What the gathers of a run need to know of every parameter, looked up once.

use crate::zero::run::Run;
use crate::zero::stage3::{gathered, is_persistent, secondary_bytes};

/// One parameter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Its elements.
    pub(super) elements: u64,
    /// Bytes of one of them.
    pub(super) element: u64,
    /// Bytes of the whole, padding included.
    pub(super) padded: u64,
    /// Bytes of its secondary copy, none without hpZ.
    pub(super) secondary: u64,
    /// Whether it is trained.
    pub(super) trainable: bool,
    /// Whether it is never released.
    pub(super) persistent: bool,
}

impl Size {
    /// Bytes of the whole.
    pub(super) fn whole(self) -> u64 {
        self.elements * self.element
    }
}

/// Those of every parameter of a run.
pub(super) fn sizes(run: &Run<'_>) -> Vec<Size> {
    let model = run.model_element();
    let parameters = run.parameters.iter().zip(is_persistent(run)).enumerate();
    parameters
        .map(|(index, (parameter, persistent))| {
            let elements = parameter.elements.0;
            let element = parameter.element.map_or(model, zeropilot_units::ElementSize::bytes);
            Size {
                elements,
                element,
                padded: gathered(elements, run.world) * element,
                secondary: secondary_bytes(run, index),
                trainable: parameter.trainable,
                persistent,
            }
        })
        .collect()
}
