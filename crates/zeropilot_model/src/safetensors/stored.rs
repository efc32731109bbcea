//! All tensors of a model, and the model they make without any family.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use zeropilot_units::{Bytes, Elements};

use crate::architecture::{Child, ChildName, Module, Parameter, TooManyElements};
use crate::dtype::Dtype;
use crate::model::{Model, Names};

use super::header::{Header, StoredTensor};

/// The tensors of all files of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StoredModel {
    /// In the natural order of their names: layer 2 before layer 10.
    pub tensors: Vec<StoredTensor>,
}

impl StoredModel {
    /// The tensors of these headers; of two with one name the first counts.
    pub fn new(headers: impl IntoIterator<Item = Header>) -> Self {
        let mut tensors: Vec<StoredTensor> =
            headers.into_iter().flat_map(|header| header.tensors).collect();
        tensors.sort_by(|left, right| natural(&left.name, &right.name));
        tensors.dedup_by(|later, first| later.name == first.name);
        Self { tensors }
    }

    /// Elements of all tensors, buffers and scales included.
    pub fn elements(&self) -> Elements {
        Elements(self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(tensor.elements)))
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> Bytes {
        let bytes = |tensor: &StoredTensor| tensor.elements.saturating_mul(tensor.dtype.bits()) / 8;
        Bytes(self.tensors.iter().fold(0, |sum, tensor| sum.saturating_add(bytes(tensor))))
    }

    /// The format of the largest part, which is the model's own where scales or norms have another.
    pub fn main_dtype(&self) -> Option<Dtype> {
        let mut elements: Vec<(Dtype, u64)> = Vec::new();
        for tensor in &self.tensors {
            match elements.iter_mut().find(|(dtype, _)| *dtype == tensor.dtype) {
                Some((_, sum)) => *sum = sum.saturating_add(tensor.elements),
                None => elements.push((tensor.dtype, tensor.elements)),
            }
        }
        elements.into_iter().max_by_key(|(_, sum)| *sum).map(|(dtype, _)| dtype)
    }

    /// The tensors as a tree of modules without classes.
    pub(crate) fn root(&self) -> Module {
        let mut root = Node::default();
        for tensor in &self.tensors {
            root.insert(&tensor.name, tensor);
        }
        root.module()
    }

    /// The model these tensors make, of no family: names and shapes, but no kinds and no ties.
    ///
    /// # Errors
    ///
    /// If its elements cannot be counted.
    pub fn model(&self) -> Result<Model, TooManyElements> {
        let root = self.root();
        let count = root.count()?;
        Ok(Model {
            family: None,
            root,
            dimensions: None,
            dtype: self.main_dtype(),
            settings: None,
            language: None,
            parts: Vec::new(),
            last: None,
            names: Names::Stored,
            output: None,
            quantized_base: None,
            count,
        })
    }
}

/// Deeper names are kept whole from here on: the tree is walked with a stack frame per level.
const DEEPEST: usize = 32;

#[derive(Default)]
struct Node<'a> {
    parameters: Vec<(&'a str, &'a StoredTensor)>,
    order: Vec<&'a str>,
    children: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn insert(&mut self, name: &'a str, tensor: &'a StoredTensor) {
        let mut node = self;
        let mut rest = name;
        for _ in 0..DEEPEST {
            let Some((part, below)) = rest.split_once('.') else { break };
            if !node.children.contains_key(part) {
                node.order.push(part);
            }
            node = node.children.entry(part).or_default();
            rest = below;
        }
        node.parameters.push((rest, tensor));
    }

    fn module(&self) -> Module {
        let mut module = Module::new("");
        for (name, tensor) in &self.parameters {
            let mut parameter = Parameter::new((*name).to_owned(), tensor.shape.clone());
            parameter.trainable = is_trainable(tensor.dtype);
            module.parameters.push(parameter);
        }
        for part in &self.order {
            if let Some(child) = self.children.get(part) {
                let name = ChildName::Named((*part).to_owned().into());
                module.children.push(Child { name, module: Arc::new(child.module()) });
            }
        }
        module
    }
}

/// Whole numbers are buffers or packed weights, and neither is trained.
fn is_trainable(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F16 | Dtype::Bf16 | Dtype::F32 | Dtype::F64)
}

/// Compares names with the numbers in them as numbers.
fn natural(left: &str, right: &str) -> Ordering {
    let number = |part: &str| part.parse::<u64>().ok();
    let parts = |text: &str| text.split('.').map(|part| (number(part), part.to_owned())).collect();
    let (left, right): (Vec<_>, Vec<_>) = (parts(left), parts(right));
    left.cmp(&right)
}
