//! Sums over the tree, each template visited once.

use zeropilot_units::Elements;

use super::module::{Module, ModuleKind, Parameter, TieGroup};

/// More elements than 64 bits can count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the model has more elements than 64 bits can count")]
pub struct TooManyElements;

/// How many elements a model has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// In all parameters, tied ones once.
    pub total: Elements,
    /// In parameters that require a gradient.
    pub trainable: Elements,
    /// In routed experts.
    pub routed: Elements,
    /// That one token meets: all but the routed experts it is not sent to.
    pub active: Elements,
    /// Parameters (tensors), tied ones once.
    pub tensors: u64,
}

#[derive(Default)]
struct Sum {
    count: Count,
    seen: Vec<TieGroup>,
}

impl Module {
    /// Counts this module and all below it.
    ///
    /// # Errors
    ///
    /// If a sum does not fit 64 bits.
    pub fn count(&self) -> Result<Count, TooManyElements> {
        let mut sum = Sum::default();
        sum.add_module(self, 1).ok_or(TooManyElements)?;
        Ok(sum.count)
    }
}

impl Sum {
    /// Depth is bounded by the families' trees, which are a dozen modules deep.
    fn add_module(&mut self, module: &Module, times: u64) -> Option<()> {
        for parameter in &module.parameters {
            self.add_parameter(module.kind, parameter, times)?;
        }
        for child in &module.children {
            self.add_module(&child.module, times.checked_mul(child.name.count())?)?;
        }
        Some(())
    }

    fn add_parameter(&mut self, kind: ModuleKind, parameter: &Parameter, times: u64) -> Option<()> {
        if let Some(group) = parameter.tie {
            if self.seen.contains(&group) {
                return Some(());
            }
            self.seen.push(group);
        }
        let elements = parameter.elements()?.checked_mul(times)?;
        let active = match kind {
            ModuleKind::Experts { count, per_token, .. } => {
                add(&mut self.count.routed, elements)?;
                (elements / count.max(1)).checked_mul(per_token.min(count))?
            }
            _ => elements,
        };
        add(&mut self.count.total, elements)?;
        add(&mut self.count.active, active)?;
        if parameter.trainable {
            add(&mut self.count.trainable, elements)?;
        }
        self.count.tensors = self.count.tensors.checked_add(times)?;
        Some(())
    }
}

fn add(sum: &mut Elements, elements: u64) -> Option<()> {
    *sum = Elements(sum.0.checked_add(elements)?);
    Some(())
}
