//! How few micro steps have to be run to know all of a training: what is counted in them is up to who runs them.

/// Micro steps that are told apart: the first finds no gradients, the last ends with the reduction, all between are
/// alike.
const DIFFERENT_MICRO_STEPS: u64 = 3;

/// Steps before everything repeats, where one step leaves something to the next.
pub(crate) const STEPS_UNTIL_STEADY: usize = 2;

/// A rank that can be sent through its micro steps.
pub(crate) trait Steps {
    /// What is told of a micro step.
    type MicroStep: Clone;
    /// The state in which a micro step begins: what follows depends on nothing else.
    type Beginning: PartialEq;

    /// Micro steps of a step.
    fn accumulation(&self) -> u64;
    /// Whether a step can end otherwise than it began: whether weights are sharded.
    fn is_sharded(&self) -> bool;
    /// The present state, if it can be compared.
    fn beginning(&self, is_last: bool) -> Option<Self::Beginning>;
    /// Runs a micro step.
    fn micro_step(&mut self, is_last: bool) -> Self::MicroStep;
    /// Begins a step.
    fn begin_step(&mut self);
    /// Ends a step.
    fn end_step(&mut self);

    /// How many micro steps are told.
    fn different_micro_steps(&self) -> u64 {
        self.accumulation().clamp(1, DIFFERENT_MICRO_STEPS)
    }

    /// A step with every micro step that is told run in full.
    fn step(&mut self) -> Vec<Self::MicroStep> {
        let count = self.different_micro_steps();
        self.begin_step();
        let micro_steps = (1..=count).map(|micro| self.micro_step(micro == count)).collect();
        self.end_step();
        micro_steps
    }

    /// A step in which micro steps that begin alike are run once; none if it does not end as it began.
    fn steady_step(&mut self) -> Option<Vec<Self::MicroStep>> {
        let count = self.different_micro_steps();
        self.begin_step();
        let mut beginnings: Vec<Option<Self::Beginning>> = Vec::new();
        let mut micro_steps: Vec<Self::MicroStep> = Vec::new();
        for micro in 1..=count {
            let beginning = self.beginning(micro == count);
            let alike = beginnings.iter().position(|other| other.is_some() && *other == beginning);
            micro_steps.push(match alike {
                Some(alike) => micro_steps[alike].clone(),
                None => self.micro_step(micro == count),
            });
            beginnings.push(beginning);
        }
        self.end_step();
        let first = beginnings.into_iter().next().flatten();
        let is_steady =
            !self.is_sharded() || (first.is_some() && first == self.beginning(count == 1));
        is_steady.then_some(micro_steps)
    }
}
