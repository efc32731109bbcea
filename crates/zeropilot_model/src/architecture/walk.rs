//! Walks in the order of PyTorch's `named_modules` and `named_parameters`.

use super::module::{Module, Parameter, TieGroup};

/// A module met on the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleEntry<'a> {
    /// Its dotted name; empty for the model itself.
    pub name: String,
    /// The module.
    pub module: &'a Module,
}

/// A parameter met on the walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterEntry<'a> {
    /// Its dotted name.
    pub name: String,
    /// The module that owns it.
    pub module: &'a Module,
    /// The parameter.
    pub parameter: &'a Parameter,
}

impl ParameterEntry<'_> {
    /// The dotted name of the module that owns it.
    pub fn module_name(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(module, _)| module)
    }
}

/// A module whose children are being visited.
#[derive(Debug, Clone)]
struct Frame<'a> {
    module: &'a Module,
    name_length: usize,
    child: usize,
    repeat: u64,
}

/// Every module, each before its children. Made by [`Module::modules`].
#[derive(Debug, Clone)]
pub struct Modules<'a> {
    frames: Vec<Frame<'a>>,
    name: String,
    root: Option<&'a Module>,
}

impl<'a> Iterator for Modules<'a> {
    type Item = ModuleEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let module = self.advance()?;
        Some(ModuleEntry { name: self.name.clone(), module })
    }
}

impl<'a> Modules<'a> {
    /// The next module, whose name is then `self.name`.
    fn advance(&mut self) -> Option<&'a Module> {
        if let Some(root) = self.root.take() {
            self.frames.push(Frame { module: root, name_length: 0, child: 0, repeat: 0 });
            return Some(root);
        }
        loop {
            let frame = self.frames.last_mut()?;
            self.name.truncate(frame.name_length);
            let Some(child) = frame.module.children.get(frame.child) else {
                self.frames.pop();
                continue;
            };
            if frame.repeat == child.name.count() {
                frame.child += 1;
                frame.repeat = 0;
                continue;
            }
            if !self.name.is_empty() {
                self.name.push('.');
            }
            self.name.push_str(&child.name.part(frame.repeat));
            frame.repeat += 1;
            let module = &*child.module;
            let name_length = self.name.len();
            self.frames.push(Frame { module, name_length, child: 0, repeat: 0 });
            return Some(module);
        }
    }
}

/// Every parameter once, by its first name. Made by [`Module::all_parameters`].
#[derive(Debug, Clone)]
pub struct Parameters<'a> {
    modules: Modules<'a>,
    current: Option<(&'a Module, usize)>,
    seen: Vec<TieGroup>,
    keep_duplicates: bool,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = ParameterEntry<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((module, index)) = &mut self.current else {
                self.current = Some((self.modules.advance()?, 0));
                continue;
            };
            let Some(parameter) = module.parameters.get(*index) else {
                self.current = None;
                continue;
            };
            *index += 1;
            if let Some(group) = parameter.tie {
                let seen = self.seen.contains(&group);
                if seen && !self.keep_duplicates {
                    continue;
                }
                if !seen {
                    self.seen.push(group);
                }
            }
            let owner = &self.modules.name;
            let mut name = String::with_capacity(owner.len() + 1 + parameter.name.len());
            name.push_str(owner);
            if !owner.is_empty() {
                name.push('.');
            }
            name.push_str(&parameter.name);
            return Some(ParameterEntry { name, module, parameter });
        }
    }
}

impl Module {
    /// This module and all below it.
    pub fn modules(&self) -> Modules<'_> {
        Modules { frames: Vec::new(), name: String::new(), root: Some(self) }
    }

    /// The parameters of this module and of all below it, each once.
    pub fn all_parameters(&self) -> Parameters<'_> {
        self.walk_parameters(false)
    }

    /// As [`Module::all_parameters`], with every name of a tied parameter.
    pub fn all_names(&self) -> Parameters<'_> {
        self.walk_parameters(true)
    }

    /// The module that owns the last parameter of all, if that parameter is its weight. A tied parameter has its place
    /// where its first name is.
    pub(crate) fn module_of_last_weight(&self) -> Option<String> {
        let (owner, name) = self.last_parameter()?;
        (name == "weight").then_some(owner)
    }

    /// The owner and the name of the last parameter, found from the end.
    fn last_parameter(&self) -> Option<(String, &str)> {
        for child in self.children.iter().rev() {
            let Some((owner, name)) = child.module.last_parameter() else { continue };
            let part = child.name.part(child.name.count().saturating_sub(1));
            let owner =
                if owner.is_empty() { part.into_owned() } else { format!("{part}.{owner}") };
            return Some((owner, name));
        }
        let own = self.parameters.iter().rev().find(|parameter| parameter.tie.is_none());
        own.map(|parameter| (String::new(), &*parameter.name))
    }

    fn walk_parameters(&self, keep_duplicates: bool) -> Parameters<'_> {
        Parameters { modules: self.modules(), current: None, seen: Vec::new(), keep_duplicates }
    }
}
