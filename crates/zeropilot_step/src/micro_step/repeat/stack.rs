//! The layers of a shallow model and of the deep one it stands for: what is called what in which.

use crate::micro_step::Item;
use crate::model::{Label, Model, ModuleInfo, ParameterInfo};
use crate::zero::gather::Event;

/// Numbers of one kind (modules or parameters) of a stack of layers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// The first one of the first layer.
    begin: u32,
    /// The first one after the last layer of the shallow model.
    end: u32,
    /// How many a layer has, of those that are repeated.
    per_layer: u32,
    /// How many are left out.
    left_out: u32,
}

impl Numbers {
    fn new(begin: usize, shallow: usize, deep: usize, left_out: u32, after: usize) -> Option<Self> {
        let missing = u32::try_from(deep.checked_sub(shallow)?).ok()?;
        let per_layer = missing / left_out;
        let [begin, end] = [begin, shallow - after].map(|n| u32::try_from(n).ok());
        (per_layer * left_out == missing).then_some(Self {
            begin: begin?,
            end: end?,
            per_layer,
            left_out: missing,
        })
    }

    /// A number of the shallow model, named by a layer that stands `layers` further down in the deep one.
    pub(super) fn moved(&self, number: u32, layers: u32) -> u32 {
        if number < self.begin {
            number
        } else if number < self.end {
            number + layers * self.per_layer
        } else {
            number + self.left_out
        }
    }

    /// What the next layer of the shallow model names where a layer names `number`.
    pub(super) fn next(&self, number: u32) -> u32 {
        let is_inside = (self.begin..self.end).contains(&number);
        if is_inside { number + self.per_layer } else { number }
    }

    /// Where a number of the deep model comes from if the layers after `last` (a number of the shallow model)
    /// repeat the one that ends there.
    fn origin(&self, number: u32, last: u32) -> u32 {
        if number < last {
            number
        } else if number < last + self.left_out {
            last - self.per_layer + (number - last) % self.per_layer
        } else {
            number - self.left_out
        }
    }
}

/// The layers of a shallow model and of a deep one.
#[derive(Debug)]
pub(super) struct Stack {
    modules: Numbers,
    parameters: Numbers,
    /// The first module of every layer of the shallow model, and the first one after the last.
    borders: Vec<u32>,
    pub(super) left_out: u32,
}

impl Stack {
    pub(super) fn of(shallow: &Model, deep: &Model, left_out: u32) -> Option<Self> {
        let layers = layers(shallow, deep)?;
        let last = *layers.last()?;
        let end = (last + 1..shallow.modules.len()).find(|&index| !is_inside(shallow, index, last));
        let end = end.unwrap_or(shallow.modules.len());
        let first_parameter =
            |module: usize| shallow.parameters.partition_point(|info| info.module.index() < module);
        let (all, own) = (shallow.modules.len(), shallow.parameters.len());
        let begin = *layers.first()?;
        let modules = Numbers::new(begin, all, deep.modules.len(), left_out, all - end)?;
        let parameters = Numbers::new(
            first_parameter(begin),
            own,
            deep.parameters.len(),
            left_out,
            own - first_parameter(end),
        )?;
        let borders = layers.iter().chain([&end]).map(|&index| u32::try_from(index).ok());
        Some(Self { modules, parameters, borders: borders.collect::<Option<_>>()?, left_out })
    }

    /// Whether the deep model is the shallow one with layer `repeated` as often as it takes.
    pub(super) fn fits(&self, shallow: &Model, deep: &Model, repeated: usize) -> bool {
        let Some(&last) = self.borders.get(repeated + 1) else { return false };
        if self.borders[repeated] + self.modules.per_layer != last {
            return false;
        }
        let before = |info: &&ParameterInfo| (info.module.index() as u64) < u64::from(last);
        let Ok(last_parameter) = u32::try_from(shallow.parameters.iter().filter(before).count())
        else {
            return false;
        };
        let module = |index: usize| self.modules.origin(number(index), last) as usize;
        let same_module = |(index, info): (usize, &ModuleInfo)| {
            let origin = shallow.modules.get(module(index));
            origin.is_some_and(|origin| {
                origin.is_leaf == info.is_leaf
                    && origin.parent.index() == module(info.parent.index())
                    && is_same_label(origin.label, info.label)
            })
        };
        let same_parameter = |(index, info): (usize, &ParameterInfo)| {
            let origin = self.parameters.origin(number(index), last_parameter) as usize;
            shallow.parameters.get(origin).is_some_and(|origin| {
                let (own, other) = (origin.parameter, info.parameter);
                origin.module.index() == module(info.module.index())
                    && origin.name == info.name
                    && own.elements == other.elements
                    && own.element_bytes == other.element_bytes
                    && own.is_trainable == other.is_trainable
            })
        };
        deep.modules.iter().enumerate().all(same_module)
            && deep.parameters.iter().enumerate().all(same_parameter)
    }

    /// An item with its module or parameter renamed.
    pub(super) fn renamed(&self, item: Item, rename: impl Fn(&Numbers, u32) -> u32) -> Item {
        match item {
            Item::Swing(_)
            | Item::Begin
            | Item::Generate
            | Item::Generated
            | Item::Publish(_)
            | Item::Score
            | Item::Value
            | Item::Reference
            | Item::Visit(_)
            | Item::Exchange(_)
            | Item::Offload(_)
            | Item::Loss => item,
            Item::Module(Event { kind, module }) => {
                Item::Module(Event { kind, module: rename(&self.modules, module) })
            }
            Item::Gradient { parameter, bytes, counted_as } => {
                let parameter = rename(&self.parameters, parameter);
                Item::Gradient { parameter, bytes, counted_as }
            }
            Item::PartOfGradient { parameter, bytes, counted_as } => {
                let parameter = rename(&self.parameters, parameter);
                Item::PartOfGradient { parameter, bytes, counted_as }
            }
            Item::Hold(parameter) => Item::Hold(rename(&self.parameters, parameter)),
            Item::LetGo(parameter) => Item::LetGo(rename(&self.parameters, parameter)),
        }
    }
}

// Modules and parameters are few enough for any integer.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn number(index: usize) -> u32 {
    index as u32
}

/// The index of a layer is not part of what it is.
fn is_same_label(one: Label, other: Label) -> bool {
    match (one, other) {
        (Label::Item(one, _), Label::Item(other, _)) => one == other,
        (one, other) => one == other,
    }
}

/// The modules of the outermost list that is shorter in the shallow model.
fn layers(shallow: &Model, deep: &Model) -> Option<Vec<usize>> {
    let is_first = |info: &&ModuleInfo| matches!(info.label, Label::Item(_, 0));
    let lists = shallow.modules.iter().filter(is_first).zip(deep.modules.iter().filter(is_first));
    let mut lists = lists.map(|(one, other)| (items(shallow, one), items(deep, other)));
    lists.find(|(one, other)| one.len() < other.len()).map(|(one, _)| one)
}

/// The modules of the list that begins with `first`.
fn items(model: &Model, first: &ModuleInfo) -> Vec<usize> {
    let Label::Item(name, _) = first.label else { return Vec::new() };
    let is_one = |info: &ModuleInfo| {
        info.parent == first.parent && matches!(info.label, Label::Item(list, _) if list == name)
    };
    let modules = model.modules.iter().enumerate();
    modules.filter(|(_, info)| is_one(info)).map(|(index, _)| index).collect()
}

fn is_inside(model: &Model, module: usize, above: usize) -> bool {
    let mut at = module;
    while at > above {
        at = model.modules[at].parent.index();
    }
    at == above
}
