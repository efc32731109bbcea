//! One module and its parameters.

use std::borrow::Cow;
use std::sync::Arc;

use super::child::{Child, ChildName};

/// What a module is to those who treat modules by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// `nn.Linear` or a subclass; the weight is `[outputs, inputs]`.
    Linear,
    /// `Conv1D` of transformers: a linear map whose weight is `[inputs, outputs]`.
    TransposedLinear,
    /// `nn.Conv1d` to `nn.Conv3d`; the weight is `[outputs, inputs, kernel..]`.
    Convolution,
    /// `nn.Embedding` or a subclass; the weight is `[rows, width]`.
    Embedding,
    /// A normalisation.
    Norm,
    /// The routed experts of a mixture, stacked in one tensor per matrix.
    Experts {
        /// How many there are.
        count: u64,
        /// How many a token is sent to.
        per_token: u64,
        /// Each expert's matrix is `[inputs, outputs]`, not `[outputs, inputs]`, and the class says so.
        transposed: bool,
    },
    /// What chooses the experts, where it is no linear module.
    Router,
    /// Anything else.
    Other,
}

/// Parameters of one group share one storage and are listed once, by the first name in the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TieGroup(pub u32);

impl TieGroup {
    /// The group in a trained copy of a module. No family has two modules that each hold two of a group's parameters,
    /// so one copy at most has it.
    pub(crate) fn of_copy(self) -> Self {
        Self(!self.0)
    }
}

/// A parameter as its module holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parameter {
    /// The last part of its name.
    pub name: Cow<'static, str>,
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// `requires_grad`.
    pub trainable: bool,
    /// What it shares its storage with.
    pub tie: Option<TieGroup>,
}

impl Parameter {
    /// A trainable parameter of its own.
    pub fn new(name: impl Into<Cow<'static, str>>, shape: impl Into<Vec<u64>>) -> Self {
        Self { name: name.into(), shape: shape.into(), trainable: true, tie: None }
    }

    /// The number of its elements, or `None` if 64 bits cannot hold it.
    pub fn elements(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size))
    }
}

/// A module: its class, its own parameters and its children.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// The name of its Python class.
    pub class: Cow<'static, str>,
    /// Its kind.
    pub kind: ModuleKind,
    /// Its own parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Its children, in order.
    pub children: Vec<Child>,
}

impl Module {
    /// A module without parameters and children.
    pub fn new(class: impl Into<Cow<'static, str>>) -> Self {
        Self::of_kind(class, ModuleKind::Other)
    }

    /// A module of a kind.
    pub fn of_kind(class: impl Into<Cow<'static, str>>, kind: ModuleKind) -> Self {
        Self { class: class.into(), kind, parameters: Vec::new(), children: Vec::new() }
    }

    /// With one more parameter.
    #[must_use]
    pub fn parameter(
        mut self,
        name: impl Into<Cow<'static, str>>,
        shape: impl Into<Vec<u64>>,
    ) -> Self {
        self.parameters.push(Parameter::new(name, shape));
        self
    }

    /// With one more child.
    #[must_use]
    pub fn with(mut self, name: impl Into<Cow<'static, str>>, module: Module) -> Self {
        self.children.push(Child { name: ChildName::Named(name.into()), module: Arc::new(module) });
        self
    }

    /// With one more child, if there is one.
    #[must_use]
    pub fn with_some(self, name: impl Into<Cow<'static, str>>, module: Option<Module>) -> Self {
        match module {
            Some(module) => self.with(name, module),
            None => self,
        }
    }

    /// With another module in the place of its child of this name.
    #[must_use]
    pub(crate) fn replacing(mut self, name: &str, module: Module) -> Self {
        let module = Arc::new(module);
        for child in self.children.iter_mut().filter(|child| child.name.includes(name)) {
            child.module = Arc::clone(&module);
        }
        self
    }

    /// With its parameter of this name in a tie group.
    #[must_use]
    pub fn tied(mut self, name: &str, group: Option<TieGroup>) -> Self {
        for parameter in self.parameters.iter_mut().filter(|parameter| parameter.name == name) {
            parameter.tie = group;
        }
        self
    }

    /// With its own parameters frozen.
    #[must_use]
    pub fn frozen(mut self) -> Self {
        for parameter in &mut self.parameters {
            parameter.trainable = false;
        }
        self
    }

    /// A `ModuleList` of `count` modules; neighbours of one kind are one child.
    pub(crate) fn list<K: PartialEq + Copy>(
        count: u64,
        kind: impl Fn(u64) -> K,
        build: impl Fn(K) -> Module,
    ) -> Self {
        let mut list = Self::new("ModuleList");
        let mut built: Vec<(K, Arc<Module>)> = Vec::new();
        for index in 0..count {
            let kind = kind(index);
            let known = built.iter().find(|(known, _)| *known == kind);
            let module = known.map(|(_, module)| Arc::clone(module)).unwrap_or_else(|| {
                let module = Arc::new(build(kind));
                built.push((kind, Arc::clone(&module)));
                module
            });
            list.push_numbered(index, module);
        }
        list
    }

    /// A `ModuleList` of equal modules.
    pub(crate) fn repeated(count: u64, module: Module) -> Self {
        let mut list = Self::new("ModuleList");
        if count > 0 {
            let name = ChildName::Numbered { first: 0, count };
            list.children.push(Child { name, module: Arc::new(module) });
        }
        list
    }

    /// Adds the next numbered child, to the last one if it is the same.
    pub(crate) fn push_numbered(&mut self, index: u64, module: Arc<Module>) {
        if let Some(Child { name: ChildName::Numbered { first, count }, module: last }) =
            self.children.last_mut()
            && *first + *count == index
            && (Arc::ptr_eq(last, &module) || *last == module)
        {
            *count += 1;
            return;
        }
        self.children.push(Child { name: ChildName::Numbered { first: index, count: 1 }, module });
    }

    /// The child of this name; a numbered one by its number.
    pub fn child(&self, name: &str) -> Option<&Module> {
        self.children.iter().find(|child| child.name.includes(name)).map(|child| &*child.module)
    }

    /// Whether it or a module inside it is one that is asked for.
    pub fn has(&self, asked: &dyn Fn(&Module) -> bool) -> bool {
        asked(self) || self.children.iter().any(|child| child.module.has(asked))
    }

    /// The module at a dotted path below this one.
    pub fn find(&self, path: &str) -> Option<&Module> {
        path.split('.').try_fold(self, |module, part| module.child(part))
    }

    /// The dimensions of the parameter `weight`.
    pub fn weight(&self) -> Option<&[u64]> {
        let weight = self.parameters.iter().find(|parameter| parameter.name == "weight");
        weight.map(|parameter| parameter.shape.as_slice())
    }

    /// Inputs and outputs of the map a linear module or an embedding is.
    pub fn features(&self) -> Option<(u64, u64)> {
        match (self.kind, self.weight()?) {
            (ModuleKind::Linear, [outputs, inputs]) => Some((*inputs, *outputs)),
            (ModuleKind::Convolution, [outputs, inputs, _, ..]) => Some((*inputs, *outputs)),
            (ModuleKind::TransposedLinear | ModuleKind::Embedding, [inputs, outputs]) => {
                Some((*inputs, *outputs))
            }
            _ => None,
        }
    }
}
