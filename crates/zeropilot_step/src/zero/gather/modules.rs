//! Which parameters a module gathers.

use std::ops::Range;

/// Parameters (indices into [`Run::parameters`](crate::zero::Run::parameters)) each module holds itself, by module; containers hold none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// Those of all modules, module by module.
    pub(super) parameters: Vec<usize>,
    ends: Vec<usize>,
}

impl Modules {
    /// Modules 0 to `count`, from pairs of a module and a parameter of it.
    pub fn new(count: usize, pairs: &[(usize, usize)]) -> Self {
        let mut ends = vec![0; count];
        for &(module, _) in pairs {
            ends[module] += 1;
        }
        let mut begin = 0;
        for end in &mut ends {
            // For now where the parameters of a module begin.
            begin += std::mem::replace(end, begin);
        }
        let mut modules = Self { parameters: vec![0; pairs.len()], ends };
        for &(module, parameter) in pairs {
            let next = &mut modules.ends[module];
            modules.parameters[*next] = parameter;
            *next += 1;
        }
        let mut begin = 0;
        for &end in &modules.ends {
            modules.parameters[begin..end].sort_unstable();
            begin = end;
        }
        modules
    }

    /// Adds a module and gives it the next index.
    pub fn push(&mut self, parameters: impl IntoIterator<Item = usize>) -> u32 {
        let start = self.parameters.len();
        self.parameters.extend(parameters);
        // The engine handles the parameters of a module in the order in which they were built.
        self.parameters[start..].sort_unstable();
        self.ends.push(self.parameters.len());
        (self.ends.len() - 1) as u32
    }

    /// Parameters of a module.
    pub fn parameters(&self, module: u32) -> &[usize] {
        &self.parameters[self.slots(module)]
    }

    /// Where the parameters of a module stand among those of all modules.
    pub(super) fn slots(&self, module: u32) -> Range<usize> {
        let module = module as usize;
        let start = if module == 0 { 0 } else { self.ends[module - 1] };
        start..self.ends[module]
    }

    /// Number of modules.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no module.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}
