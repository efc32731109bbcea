//! The recorded order of one micro step, and when a parameter is needed again.

use super::Modules;
use super::sizes::Size;

/// Module events of one micro step, forward and backward.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    /// Modules in order.
    modules: Vec<u32>,
    /// Parameters in the order of use, with the place of the module event that uses them.
    entries: Vec<(u32, u32)>,
    /// Places at which each parameter is used: parameter by parameter, those of the first one first.
    uses: Vec<u32>,
    /// Where the uses of each parameter end.
    ends: Vec<u32>,
    /// Elements of all modules before each place.
    elements_before: Vec<u64>,
}

// A micro step has far fewer than four billion module events and uses of parameters.
#[allow(clippy::cast_possible_truncation)]
impl Trace {
    pub(super) fn new(recorded: &[u32], modules: &Modules, sizes: &[Size]) -> Self {
        let mut entries = Vec::with_capacity(recorded.len());
        let mut elements_before = Vec::with_capacity(recorded.len() + 1);
        let mut ends = vec![0; sizes.len()];
        let mut elements = 0;
        for (place, &module) in recorded.iter().enumerate() {
            elements_before.push(elements);
            for &parameter in modules.parameters(module) {
                entries.push((parameter as u32, place as u32));
                ends[parameter] += 1;
                elements += sizes[parameter].elements;
            }
        }
        elements_before.push(elements);
        let mut begin = 0;
        for end in &mut ends {
            // For now where the uses begin.
            begin += std::mem::replace(end, begin);
        }
        let mut uses = vec![0; entries.len()];
        for &(parameter, place) in &entries {
            let next = &mut ends[parameter as usize];
            uses[*next as usize] = place;
            *next += 1;
        }
        Self { modules: recorded.to_vec(), entries, uses, ends, elements_before }
    }

    /// The module at a place.
    pub(super) fn module(&self, place: u32) -> Option<u32> {
        self.modules.get(place as usize).copied()
    }

    /// A parameter and the place that uses it, by position in the order of use.
    pub(super) fn entry(&self, position: usize) -> Option<(usize, u32)> {
        self.entries.get(position).map(|&(parameter, place)| (parameter as usize, place))
    }

    /// Whether a parameter is used again from `place` on before modules of `distance` elements have gone by.
    pub(super) fn returns_within(&self, parameter: usize, place: u32, distance: u64) -> bool {
        let begin = if parameter == 0 { 0 } else { self.ends[parameter - 1] };
        let uses = &self.uses[begin as usize..self.ends[parameter] as usize];
        let next = uses.partition_point(|&used| used < place);
        uses.get(next).is_some_and(|&used| {
            self.elements_before[used as usize] - self.elements_before[place as usize] < distance
        })
    }
}
