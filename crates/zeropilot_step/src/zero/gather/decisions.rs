//! Which parameters a module releases at a place in the recorded order: decided once and remembered.

/// No decision.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Decision {
    module: u32,
    /// Where it begins in [`Decisions::goes`].
    begin: u32,
    /// Another one of the same place.
    next: u32,
}

/// All decisions of a micro step.
#[derive(Debug, Clone, Default)]
pub(super) struct Decisions {
    /// By place, the first decision there.
    first: Vec<u32>,
    decisions: Vec<Decision>,
    /// For every parameter of the module of each decision whether it goes.
    goes: Vec<bool>,
}

// A micro step has far fewer than four billion module events.
#[allow(clippy::cast_possible_truncation)]
impl Decisions {
    /// Where in [`Decisions::goes`] the answers for the parameters of a module at a place begin; `decide` is asked
    /// for each of them the first time.
    pub(super) fn at(
        &mut self,
        place: u32,
        module: u32,
        decide: impl Iterator<Item = bool>,
    ) -> usize {
        let place = place as usize;
        if self.first.len() <= place {
            self.first.resize(place + 1, NONE);
        }
        let mut known = self.first[place];
        while known != NONE {
            let decision = self.decisions[known as usize];
            if decision.module == module {
                return decision.begin as usize;
            }
            known = decision.next;
        }
        let begin = self.goes.len();
        self.goes.extend(decide);
        let next = std::mem::replace(&mut self.first[place], self.decisions.len() as u32);
        self.decisions.push(Decision { module, begin: begin as u32, next });
        begin
    }

    pub(super) fn goes(&self, index: usize) -> bool {
        self.goes[index]
    }
}
