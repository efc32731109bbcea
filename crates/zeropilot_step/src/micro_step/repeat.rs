//! The micro step of a deep model from that of a shallow one: layers that are alike are run a few times and told as
//! often as there are.
//!
//! Nothing is assumed that can be looked at. The shallow model must be the deep one with layers left out (modules and
//! parameters are compared one by one), and in its micro step neighbouring layers must do the same with their own
//! modules and parameters. Otherwise there is no answer, and the whole program is run.

use super::{Item, MicroStep, Reader};
use crate::family::{Program, Setup, build};
use crate::model::{Label, Model, ModuleInfo, ParameterInfo};
use crate::tape::Options;
use crate::zero::Swing;
use crate::zero::gather::Event;

/// Layers of one kind that are run: the first and the last may differ from those between, which must be alike.
const RUN: u64 = 5;
/// The layer that is repeated, among those.
const REPEATED: u64 = 2;
/// With fewer layers to leave out it is not worth it.
const FEWEST: u64 = 3;

/// The micro step of the program of `setup`, if enough of its layers are alike.
pub(super) fn micro_step(
    setup: &Setup,
    program: &dyn Program,
    options: Options,
) -> Option<MicroStep> {
    let dense = setup.shape.dense_layers;
    let left_out = setup.shape.layers.checked_sub(dense + RUN).filter(|&count| count >= FEWEST)?;
    let mut shallow = setup.clone();
    shallow.shape.layers -= left_out;
    let shallow = build(&shallow);
    let layers = usize::try_from(dense + RUN).ok()?;
    let repeated = usize::try_from(dense + REPEATED).ok()?;
    let left_out = u32::try_from(left_out).ok()?;
    let stack = Stack::of(shallow.model(), program.model(), left_out)?;
    if !stack.fits(shallow.model(), program.model(), repeated) {
        return None;
    }
    let read = Reader::read(&*shallow, options, true);
    let run = Run { read: &read.micro_step, stack: &stack, repeated, layers };
    let [forward, backward] = &read.borders;
    if forward.len() != layers + 1 || backward.len() != layers + 1 {
        return None;
    }
    let mut writer = Writer { swings: read.micro_step.swings.clone(), ..Writer::default() };
    let forward = run.forward(forward, &mut writer)?;
    let backward = run.backward(backward, &mut writer)?;
    Some(MicroStep { forward, backward, swings: writer.swings })
}

/// Numbers of one kind (modules or parameters) of a stack of layers.
#[derive(Debug, Clone, Copy)]
struct Numbers {
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
    fn moved(&self, number: u32, layers: u32) -> u32 {
        if number < self.begin {
            number
        } else if number < self.end {
            number + layers * self.per_layer
        } else {
            number + self.left_out
        }
    }

    /// What the next layer of the shallow model names where a layer names `number`.
    fn next(&self, number: u32) -> u32 {
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
struct Stack {
    modules: Numbers,
    parameters: Numbers,
    /// The first module of every layer of the shallow model, and the first one after the last.
    borders: Vec<u32>,
    left_out: u32,
}

impl Stack {
    fn of(shallow: &Model, deep: &Model, left_out: u32) -> Option<Self> {
        let layers = layers(shallow)?;
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
    fn fits(&self, shallow: &Model, deep: &Model, repeated: usize) -> bool {
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
    fn renamed(&self, item: Item, rename: impl Fn(&Numbers, u32) -> u32) -> Item {
        match item {
            Item::Swing(place) => Item::Swing(place),
            Item::Module(Event { kind, module }) => {
                Item::Module(Event { kind, module: rename(&self.modules, module) })
            }
            Item::Gradient { parameter, bytes, counted_as } => {
                let parameter = rename(&self.parameters, parameter);
                Item::Gradient { parameter, bytes, counted_as }
            }
            Item::Hold(parameter) => Item::Hold(rename(&self.parameters, parameter)),
            Item::LetGo(parameter) => Item::LetGo(rename(&self.parameters, parameter)),
        }
    }
}

// Modules and parameters are few enough for any integer.
#[allow(clippy::cast_possible_truncation)]
fn number(index: usize) -> u32 {
    index as u32
}

/// The index of a layer is not part of what it is.
fn is_same_label(one: Label, other: Label) -> bool {
    match (one, other) {
        (Label::Item(one, _), Label::Item(other, _)) => one == other,
        (one, other) => one == other,
    }
}

/// The modules of the outermost list.
fn layers(model: &Model) -> Option<Vec<usize>> {
    let is_first = |info: &ModuleInfo| matches!(info.label, Label::Item(_, 0));
    let first = model.modules.iter().find(|info| is_first(info))?;
    let Label::Item(name, _) = first.label else { return None };
    let is_one = |info: &ModuleInfo| {
        info.parent == first.parent && matches!(info.label, Label::Item(list, _) if list == name)
    };
    let modules = model.modules.iter().enumerate();
    Some(modules.filter(|(_, info)| is_one(info)).map(|(index, _)| index).collect())
}

fn is_inside(model: &Model, module: usize, above: usize) -> bool {
    let mut at = module;
    while at > above {
        at = model.modules[at].parent.index();
    }
    at == above
}

/// The run of a shallow model, to be told as that of a deep one.
struct Run<'a> {
    read: &'a MicroStep,
    stack: &'a Stack,
    repeated: usize,
    layers: usize,
}

impl Run<'_> {
    fn forward(&self, borders: &[usize], writer: &mut Writer) -> Option<Vec<Item>> {
        let items = &self.read.forward;
        let layer = |layer: usize| &items[borders[layer]..borders[layer + 1]];
        self.check(layer)?;
        writer.begin(items.len());
        let (left_out, after) = (self.stack.left_out, self.repeated + 1);
        writer.add(self.stack, &items[..borders[after]], 0);
        for copy in 1..=left_out {
            writer.add(self.stack, layer(self.repeated), copy);
        }
        writer.add(self.stack, &items[borders[after]..], left_out);
        Some(writer.end())
    }

    /// The last layer comes first.
    fn backward(&self, borders: &[usize], writer: &mut Writer) -> Option<Vec<Item>> {
        let items = &self.read.backward;
        let place = |layer: usize| self.layers - 1 - layer;
        let layer = |layer: usize| &items[borders[place(layer)]..borders[place(layer) + 1]];
        self.check(layer)?;
        writer.begin(items.len());
        let (left_out, before) = (self.stack.left_out, borders[place(self.repeated)]);
        writer.add(self.stack, &items[..before], left_out);
        for copy in (1..=left_out).rev() {
            writer.add(self.stack, layer(self.repeated), copy);
        }
        writer.add(self.stack, &items[before..], 0);
        Some(writer.end())
    }

    /// The layer that is repeated and its neighbours do the same.
    fn check<'i>(&self, layer: impl Fn(usize) -> &'i [Item]) -> Option<()> {
        let is_same = |one: &Item, other: &Item| match (self.swing(*one), self.swing(*other)) {
            (Some(one), Some(other)) => one == other,
            _ => self.stack.renamed(*one, Numbers::next) == *other,
        };
        let are_same = |one: usize, other: usize| {
            let (one, other) = (layer(one), layer(other));
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        };
        let middle = self.repeated;
        (are_same(middle - 1, middle) && are_same(middle, middle + 1)).then_some(())
    }

    fn swing(&self, item: Item) -> Option<&Swing> {
        self.read.swing(item)
    }
}

/// Joins items; swings that meet become one.
#[derive(Debug, Default)]
struct Writer {
    items: Vec<Item>,
    swings: Vec<Swing>,
    /// The two swings that were joined last and what came of them.
    joined: Option<(u32, u32, u32)>,
}

impl Writer {
    fn begin(&mut self, capacity: usize) {
        self.items = Vec::with_capacity(capacity);
    }

    fn end(&mut self) -> Vec<Item> {
        std::mem::take(&mut self.items)
    }

    fn add(&mut self, stack: &Stack, items: &[Item], layers: u32) {
        self.items.reserve(items.len());
        for &item in items {
            match (item, self.items.last()) {
                (Item::Swing(next), Some(&Item::Swing(last))) => self.join(last, next),
                _ => {
                    let moved =
                        stack.renamed(item, |numbers, number| numbers.moved(number, layers));
                    self.items.push(moved);
                }
            }
        }
    }

    /// The last item is a swing, and so is the next.
    fn join(&mut self, last: u32, next: u32) {
        self.items.pop();
        if let Some((_, _, known)) = self.joined.filter(|&(a, b, _)| (a, b) == (last, next)) {
            self.items.push(Item::Swing(known));
            return;
        }
        let joined = self.swings[last as usize].then(&self.swings[next as usize]);
        if !joined.is_nothing() {
            let place = number(self.swings.len());
            self.swings.push(joined);
            self.joined = Some((last, next, place));
            self.items.push(Item::Swing(place));
        }
    }
}
