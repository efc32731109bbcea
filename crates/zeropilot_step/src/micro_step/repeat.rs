//! The micro step of a deep model from that of a shallow one: layers that are alike are run a few times and told as
//! often as there are.
//!
//! Nothing is assumed that can be looked at. The shallow model must be the deep one with layers left out (modules and
//! parameters are compared one by one), and in its micro step neighbouring layers must do the same with their own
//! modules and parameters. Otherwise there is no answer, and the whole program is run.

mod stack;

use self::stack::{Numbers, Stack, number};
use super::{Item, MicroStep, Reader};
use crate::family::{Program, Setup, build, micro_step as run_program};
use crate::tape::Options;
use crate::zero::Swing;

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
    let dense = setup.first_layers();
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
    let read = Reader::read(&run_program(&*shallow, options), options, true);
    let run = Run { read: &read.micro_step, stack: &stack, repeated, layers };
    let [forward, backward] = &read.borders;
    if forward.len() != layers + 1 || backward.len() != layers + 1 {
        return None;
    }
    let mut writer = Writer { swings: read.micro_step.swings.clone(), ..Writer::default() };
    let forward = run.forward(forward, &mut writer)?;
    let backward = run.backward(backward, &mut writer)?;
    let bypasses_model = read.micro_step.bypasses_model;
    let swings = writer.swings;
    Some(MicroStep { forward, backward, swings, bypasses_model, ..MicroStep::default() })
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
