//! The modules and parameters a program is written over: names, sizes, order.

use std::collections::BTreeSet;

/// A parameter, by its place in `named_parameters` order (tied weights once).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ParameterId(u32);

impl ParameterId {
    // A model has far fewer than four billion parameter tensors.
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) fn new(index: usize) -> Self {
        Self(index as u32)
    }

    /// The place of this parameter in [`Model::parameters`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A module, by its place in the order of registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u32);

impl ModuleId {
    /// The place of this module in [`Model::modules`].
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A module as programs use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Module {
    /// Which module.
    pub id: ModuleId,
    /// A ZeRO-3 leaf: its children emit no events, the block is gathered as a whole.
    pub is_leaf: bool,
}

/// A parameter as programs use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Which parameter.
    pub id: ParameterId,
    /// Number of elements.
    pub elements: u64,
    /// Bytes of one element.
    pub element_bytes: u8,
    /// Whether it wants a gradient.
    pub is_trainable: bool,
}

/// One part of a dotted module name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    /// The top of the tree, which has no name.
    Top,
    /// An attribute, possibly several joined by dots.
    Name(&'static str),
    /// A place in a module list: the list's name and the index.
    Item(&'static str, u32),
}

/// What the model knows of a module.
#[derive(Debug, Clone, Copy)]
pub struct ModuleInfo {
    /// The module that contains it; the top contains itself.
    pub parent: ModuleId,
    /// Its name within the parent.
    pub label: Label,
    /// Whether ZeRO-3 treats it as a leaf.
    pub is_leaf: bool,
}

/// What the model knows of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterInfo {
    /// The module that owns it.
    pub module: ModuleId,
    /// Its name within the module.
    pub name: &'static str,
    /// The parameter itself.
    pub parameter: Parameter,
}

/// A dotted name with every number in it as `*`: the same for all layers of a stack.
pub(crate) fn pattern(name: &str) -> String {
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> =
        name.split('.').map(|part| if is_number(part) { "*" } else { part }).collect();
    parts.join(".")
}

/// All modules and parameters of a model, in order of registration.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Modules; the first is the top.
    pub modules: Vec<ModuleInfo>,
    /// Parameters in `named_parameters` order.
    pub parameters: Vec<ParameterInfo>,
    /// Weights kept in four bits.
    pub quantized: Vec<ParameterId>,
    /// Parameters a module uses but does not own: tied weights, embedding adapters.
    pub borrowed: Vec<(ModuleId, ParameterId)>,
}

impl Model {
    /// The full dotted name of a module; empty for the top.
    #[must_use]
    pub fn module_name(&self, id: ModuleId) -> String {
        let info = self.modules[id.index()];
        let own = match info.label {
            Label::Top => return String::new(),
            Label::Name(name) => name.to_owned(),
            Label::Item(list, index) => format!("{list}.{index}"),
        };
        let parent = self.module_name(info.parent);
        if parent.is_empty() { own } else { format!("{parent}.{own}") }
    }

    /// The module at a place in the order of registration.
    #[must_use]
    pub fn module_id(&self, index: usize) -> Option<ModuleId> {
        // Only places that exist are asked for, and those fit.
        #[allow(clippy::cast_possible_truncation)]
        (index < self.modules.len()).then_some(ModuleId(index as u32))
    }

    /// The full dotted name of a parameter.
    #[must_use]
    pub fn parameter_name(&self, id: ParameterId) -> String {
        let info = self.parameters[id.index()];
        self.name_in(info.module, info.name)
    }

    /// The full dotted name of something in a module.
    pub(crate) fn name_in(&self, module: ModuleId, name: &str) -> String {
        let module = self.module_name(module);
        if module.is_empty() { name.to_owned() } else { format!("{module}.{name}") }
    }

    /// Modules and the parameters they gather when they are called: their own, those they borrow, and for a leaf block
    /// everything inside it. In no order of modules.
    pub fn gathered(&self) -> impl Iterator<Item = (ModuleId, ParameterId)> {
        let own = self.parameters.iter().flat_map(|info| {
            let modules = [Some(info.module), self.leaf_above(info.module)];
            modules.into_iter().flatten().map(|module| (module, info.parameter.id))
        });
        own.chain(self.borrowed.iter().copied())
    }

    /// The leaf block each parameter is inside of, by [`ParameterId::index`].
    #[must_use]
    pub fn blocks(&self) -> Vec<Option<u32>> {
        self.parameters
            .iter()
            .map(|info| {
                let own = self.modules[info.module.index()].is_leaf.then_some(info.module);
                own.or_else(|| self.leaf_above(info.module)).map(|module| module.0)
            })
            .collect()
    }

    /// The leaf block that strictly contains `module`.
    fn leaf_above(&self, module: ModuleId) -> Option<ModuleId> {
        let mut at = module;
        loop {
            let parent = self.modules[at.index()].parent;
            if parent == at {
                return None;
            }
            if self.modules[parent.index()].is_leaf {
                return Some(parent);
            }
            at = parent;
        }
    }

    /// Add a module under `parent`, or the top when there is none yet. `leaves` are the names of modules that ZeRO-3
    /// treats as leaves.
    pub(crate) fn add_module(
        &mut self,
        parent: Option<ModuleId>,
        label: Label,
        leaves: &BTreeSet<String>,
    ) -> Module {
        // A model has far fewer than four billion modules.
        #[allow(clippy::cast_possible_truncation)]
        let id = ModuleId(self.modules.len() as u32);
        self.modules.push(ModuleInfo { parent: parent.unwrap_or(id), label, is_leaf: false });
        // The engine does not look inside a leaf.
        let is_leaf = !leaves.is_empty()
            && leaves.contains(&self.module_name(id))
            && self.leaf_above(id).is_none();
        self.modules[id.index()].is_leaf = is_leaf;
        Module { id, is_leaf }
    }

    /// Add a parameter to `module`.
    pub(crate) fn add_parameter(
        &mut self,
        module: ModuleId,
        name: &'static str,
        elements: u64,
        element_bytes: u8,
        is_trainable: bool,
    ) -> Parameter {
        let id = ParameterId::new(self.parameters.len());
        let parameter = Parameter { id, elements, element_bytes, is_trainable };
        self.parameters.push(ParameterInfo { module, name, parameter });
        parameter
    }
}
