//! A new tree from an old one, module by module, with repeats kept wherever they stay equal.

use std::sync::Arc;

use super::child::{Child, ChildName};
use super::module::{Module, Parameter};

/// Stands for the number of any repeat in names where the number does not matter.
const ANY_NUMBER: &str = "*";

/// What to make of each module.
pub(crate) trait Rewriter {
    /// Whether names with different layer numbers can be treated differently.
    fn minds_numbers(&self) -> bool;

    /// The module that takes the place of `module`, whose children are rewritten already.
    fn rewrite(&mut self, name: &str, module: Module) -> Module;
}

/// Rewrites a module named `name` and all below it, children first.
pub(crate) fn rewrite(name: &str, module: &Module, rewriter: &mut impl Rewriter) -> Module {
    let mut new = Module { children: Vec::with_capacity(module.children.len()), ..module.clone() };
    for child in &module.children {
        match child.name {
            ChildName::Numbered { first, count } if rewriter.minds_numbers() => {
                for number in first..first.saturating_add(count) {
                    let name = join(name, &number.to_string());
                    new.push_numbered(number, Arc::new(rewrite(&name, &child.module, rewriter)));
                }
            }
            ChildName::Numbered { .. } => {
                let module = rewrite(&join(name, ANY_NUMBER), &child.module, rewriter);
                new.children.push(Child { name: child.name.clone(), module: Arc::new(module) });
            }
            ChildName::Named(ref part) => {
                let module = rewrite(&join(name, part), &child.module, rewriter);
                new.children.push(Child { name: child.name.clone(), module: Arc::new(module) });
            }
        }
    }
    rewriter.rewrite(name, new)
}

fn join(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
}

impl Module {
    /// This module with a change made to every parameter in and below it.
    pub(crate) fn map_parameters(&self, change: &impl Fn(&mut Parameter)) -> Module {
        let mut new = self.clone();
        new.parameters.iter_mut().for_each(change);
        for child in &mut new.children {
            child.module = Arc::new(child.module.map_parameters(change));
        }
        new
    }
}
