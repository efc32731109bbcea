//! The recorded order of one micro step, and when a parameter is needed again.

use super::Modules;
use crate::zero::run::Run;

/// Module events of one micro step, forward and backward.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// Parameters in the order of use, with the place of the module event that uses them.
    entries: Vec<(usize, usize)>,
    /// Places at which each parameter is used.
    uses: Vec<Vec<usize>>,
    /// Elements of all modules before each place.
    elements_before: Vec<u64>,
}

impl Trace {
    pub(super) fn new(recorded: &[u32], modules: &Modules, run: &Run<'_>) -> Self {
        let mut entries = Vec::new();
        let mut uses = vec![Vec::new(); run.parameters.len()];
        let mut elements_before = Vec::with_capacity(recorded.len() + 1);
        let mut elements = 0;
        for (place, &module) in recorded.iter().enumerate() {
            elements_before.push(elements);
            for &parameter in modules.parameters(module) {
                entries.push((parameter, place));
                uses[parameter].push(place);
                elements += run.parameters[parameter].elements.0;
            }
        }
        elements_before.push(elements);
        Self { entries, uses, elements_before }
    }

    /// A parameter and the place that uses it, by position in the order of use.
    pub(super) fn entry(&self, position: usize) -> Option<(usize, usize)> {
        self.entries.get(position).copied()
    }

    /// Whether a parameter is used again from `place` on before modules of `distance` elements have gone by.
    pub(super) fn returns_within(&self, parameter: usize, place: usize, distance: u64) -> bool {
        let uses = &self.uses[parameter];
        let next = uses.partition_point(|&used| used < place);
        uses.get(next).is_some_and(|&used| {
            self.elements_before[used] - self.elements_before[place] < distance
        })
    }
}
