//! When gathered parameters are let go.

use super::Gatherer;
use crate::zero::sink::Sink;

impl Gatherer<'_> {
    pub(super) fn leave(&mut self, module: u32, backward: bool, sink: &mut impl Sink) {
        let slots = self.modules.slots(module);
        let mut recomputed = Vec::new();
        if backward {
            self.close_backward(module);
            recomputed = std::mem::take(&mut self.recomputed[module as usize]);
        }
        let decided = self.decide(module);
        for (offset, slot) in slots.enumerate() {
            let parameter = self.stop_using(slot);
            let with_others =
                || !self.sizes[parameter].persistent && recomputed.contains(&parameter);
            if self.goes(decided, offset) || with_others() {
                self.release(parameter, sink);
            }
        }
        for &parameter in &recomputed {
            let own = self.modules.parameters(module).iter().position(|&own| own == parameter);
            if !self.sizes[parameter].persistent
                || own.is_some_and(|offset| self.goes(decided, offset))
            {
                self.release(parameter, sink);
            }
        }
        if backward {
            recomputed.clear();
            self.recomputed[module as usize] = recomputed;
        }
    }

    fn close_backward(&mut self, module: u32) {
        if std::mem::replace(&mut self.is_in_backward[module as usize], false)
            && let Some(place) = self.in_backward.iter().rposition(|&other| other == module)
        {
            self.in_backward.remove(place);
        }
    }

    /// A module no longer uses one of its parameters; which one.
    fn stop_using(&mut self, slot: usize) -> usize {
        let parameter = self.modules.parameters[slot];
        if std::mem::replace(&mut self.in_use[slot], false) {
            self.users[parameter] -= 1;
        }
        parameter
    }

    /// Which parameters of a module may go at the present place, as [`Decisions`] keeps it; while recording all do.
    fn decide(&mut self, module: u32) -> Option<usize> {
        let trace = self.trace.as_ref()?;
        let parameters = self.modules.parameters(module);
        if parameters.is_empty() {
            return None;
        }
        let (step, reuse) = (self.step, self.run.zero.max_reuse_distance.0);
        let may_go = |&p: &usize| {
            // One whose later use the prefetch has already passed must stay, or that use would come too late.
            let awaited = self.fetched_for[p].is_some_and(|place| place > step);
            !self.sizes[p].persistent && !awaited && !trace.returns_within(p, step, reuse)
        };
        Some(self.decisions.at(step, module, parameters.iter().map(may_go)))
    }

    fn goes(&self, decided: Option<usize>, offset: usize) -> bool {
        decided.is_none_or(|begin| self.decisions.goes(begin + offset))
    }

    pub(super) fn release(&mut self, parameter: usize, sink: &mut impl Sink) {
        if self.users[parameter] == 0 && self.storages.release(parameter, sink) {
            self.available -= i128::from(self.sizes[parameter].elements);
        }
    }

    /// Backward is over: modules whose inputs needed no gradient let go now, the latest first.
    pub fn end_backward(&mut self, sink: &mut impl Sink) {
        while let Some(module) = self.in_backward.pop() {
            self.is_in_backward[module as usize] = false;
            let recomputed = std::mem::take(&mut self.recomputed[module as usize]);
            for slot in self.modules.slots(module) {
                let parameter = self.stop_using(slot);
                self.release_if_not_persistent(parameter, sink);
            }
            for parameter in recomputed {
                self.release_if_not_persistent(parameter, sink);
            }
        }
    }

    fn release_if_not_persistent(&mut self, parameter: usize, sink: &mut impl Sink) {
        if !self.sizes[parameter].persistent {
            self.release(parameter, sink);
        }
    }

    /// The optimizer step begins: everything is released.
    pub fn release_all(&mut self, sink: &mut impl Sink) {
        self.users.fill(0);
        self.in_use.fill(false);
        for parameter in 0..self.run.parameters.len() {
            self.storages.land(parameter, sink);
            self.release(parameter, sink);
        }
    }
}
