//! One micro step of a model as what matters to ZeRO: module events, gradients, and between them the swings of
//! everything else.
//!
//! It depends on the model, the batch and what is trained, not on the number of ranks or the sizes of buckets, so one
//! of these serves many questions. No allocation is lost in a [`Swing`]: its highest point and its end are exact.

mod repeat;

use crate::family::{Program, Setup, micro_step};
use crate::model::{Model, ModuleId, ParameterId};
use crate::tape::{Category, Edge, Listener, Mark, Options, Pass, Storage, StorageId, Trace, Work};
use crate::task::Publication;
use crate::zero::gather::{Event, EventKind, Gatherer, Modules};
use crate::zero::{Collective, HostCopy, Sink, Swing};

/// One thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Memory goes up and down; the place in [`MicroStep::swings`].
    Swing(u32),
    /// Something happens to a module (stage 3 only).
    Module(Event),
    /// The gradient of a parameter is complete.
    Gradient {
        /// Which parameter.
        parameter: u32,
        /// The size of its gradient.
        bytes: u64,
        /// What its storage was counted as, by place in [`Swing::CATEGORIES`].
        counted_as: u8,
    },
    /// A part of the gradient of a parameter; more will come.
    PartOfGradient {
        /// Which parameter.
        parameter: u32,
        /// The size of its gradient.
        bytes: u64,
        /// What its storage was counted as, by place in [`Swing::CATEGORIES`].
        counted_as: u8,
    },
    /// A re-run has saved the weight of a parameter (stage 3 only).
    Hold(u32),
    /// Backward has used a weight a re-run had saved (stage 3 only).
    LetGo(u32),
    /// A forward pass begins that is not the first of its micro step.
    Begin,
    /// The model begins to generate: stage 3 gathers all of it.
    Generate,
    /// It has generated: everything is released, and the order of modules is forgotten.
    Generated,
    /// Another engine is given the weights, and generates.
    Publish(Publication),
    /// The model runs without gradients, before it runs to be trained.
    Score,
    /// The value model runs by itself without gradients, before it runs to be trained. To stage 3 this is no new pass: the
    /// module at the top is not called, so the order of modules goes on after backward.
    Value,
    /// The model runs as its own reference, until the loss is computed.
    Reference,
    /// Another model runs: the one of this number.
    Visit(u8),
    /// The models have returned; the loss is computed.
    Loss,
    /// Ranks that share a sequence communicate.
    Exchange(Collective),
    /// A checkpoint goes to the host or comes back.
    Offload(HostCopy),
}

/// One micro step.
#[derive(Debug, Clone, Default)]
pub struct MicroStep {
    /// Up to the moment when the caller holds nothing but the loss.
    pub forward: Vec<Item>,
    /// From there to the end of backward.
    pub backward: Vec<Item>,
    /// The swings the items name.
    pub swings: Vec<Swing>,
    /// Items at the beginning of forward that happen once in a step, before its first micro step.
    pub once: usize,
    /// Pieces in which completions run through the models before any is learned from; those items are of one piece. One if
    /// it is not set.
    pub pieces: u64,
    /// Whether more steps than one learn from what these items generate, so that they happen in the first of them only.
    pub is_reused: bool,
    /// Whether the value model runs by itself.
    pub has_value_pass: bool,
    /// Whether the model's body is called instead of the model: stage 3 never learns that a pass begins.
    pub bypasses_model: bool,
}

impl MicroStep {
    /// The micro step of a program.
    #[must_use]
    pub fn of(program: &dyn Program, options: Options) -> Self {
        Self::from_trace(&micro_step(program, options), options)
    }

    /// The micro step that a trace has recorded.
    pub(crate) fn from_trace(trace: &Trace, options: Options) -> Self {
        Reader::read(trace, options, false).micro_step
    }

    /// The same of a program built from `setup`: where layers repeat only a few of them are run.
    ///
    /// Items are equal to those of [`MicroStep::of`]; swings that are alike are kept once.
    #[must_use]
    pub fn of_layers(setup: &Setup, program: &dyn Program, options: Options) -> Self {
        repeat::micro_step(setup, program, options).unwrap_or_else(|| Self::of(program, options))
    }

    /// Whether it is more than one forward pass and one backward pass of one model.
    pub(crate) fn has_more_passes(&self) -> bool {
        let is_more = |item: &Item| {
            use Item::{Begin, Generate, Reference, Score, Value, Visit};
            matches!(item, Begin | Generate | Reference | Score | Value | Visit(_))
        };
        self.forward.iter().any(is_more)
    }

    /// Follows the forward pass of a model that only runs: `swing` hears of every swing, the gatherer of every module.
    pub(crate) fn follow_pass<S: Sink>(
        &self,
        mut gatherer: Option<&mut Gatherer<'_>>,
        sink: &mut S,
        swing: impl Fn(&mut S, &Swing),
    ) {
        if let Some(gatherer) = &mut gatherer {
            gatherer.begin_micro_step(sink);
        }
        for &item in &self.forward {
            match (item, &mut gatherer) {
                (Item::Swing(place), _) => swing(sink, &self.swings[place as usize]),
                (Item::Module(event), Some(gatherer)) => gatherer.event(event, sink),
                (Item::Exchange(call), _) => sink.exchange(call),
                _ => {}
            }
        }
    }

    /// The swing an item names.
    #[must_use]
    pub fn swing(&self, item: Item) -> Option<&Swing> {
        match item {
            Item::Swing(place) => self.swings.get(place as usize),
            _ => None,
        }
    }

    /// Whether stage 3 learns that a micro step begins.
    pub(crate) fn is_announced(&self) -> bool {
        !self.has_value_pass && !self.bypasses_model
    }

    /// Trained parameters in the order in which their gradients become complete.
    pub fn gradient_order(&self) -> impl Iterator<Item = usize> + '_ {
        self.forward.iter().chain(&self.backward).filter_map(|item| match item {
            Item::Gradient { parameter, .. } => Some(*parameter as usize),
            _ => None,
        })
    }
}

/// Writes a micro step down while it listens to a trace.
#[derive(Debug, Default)]
struct Reader {
    micro_step: MicroStep,
    is_backward: bool,
    swing: Swing,
    /// Whether anybody gathers weights, so that it matters how long they are held.
    gathers: bool,
    /// Whether swings end at the borders of layers.
    cuts: bool,
    /// How many items there were at each border, forward and backward.
    borders: [Vec<usize>; 2],
}

impl Reader {
    fn read(trace: &Trace, options: Options, cuts: bool) -> Self {
        let mut reader = Self { gathers: options.module_events, cuts, ..Self::default() };
        trace.replay(&mut reader);
        reader.flush();
        reader
    }

    fn push(&mut self, item: Item) {
        self.flush();
        self.items().push(item);
    }

    fn items(&mut self) -> &mut Vec<Item> {
        if self.is_backward { &mut self.micro_step.backward } else { &mut self.micro_step.forward }
    }

    fn flush(&mut self) {
        if self.swing.is_nothing() {
            return;
        }
        // A model has far fewer than four billion operations.
        #[allow(clippy::cast_possible_truncation)]
        let place = self.micro_step.swings.len() as u32;
        self.micro_step.swings.push(std::mem::take(&mut self.swing));
        self.items().push(Item::Swing(place));
    }

    fn change(&mut self, category: Category, bytes: i64) {
        let Swing { rise, at_rise, net, .. } = &mut self.swing;
        net[place(category)] += bytes;
        let now: i64 = net.iter().sum();
        if let Ok(now) = u64::try_from(now)
            && now > *rise
        {
            *rise = now;
            *at_rise = *net;
        }
    }
}

/// The place of a category of the tape in [`Swing::CATEGORIES`].
fn place(category: Category) -> usize {
    match category {
        Category::Activation | Category::Index => 0,
        Category::Loss => 1,
        Category::ActivationGradient => 2,
        Category::ParameterGradient => 3,
    }
}

// Categories are few.
#[allow(clippy::cast_possible_truncation)]
fn counted_as(storage: Storage) -> u8 {
    place(storage.category) as u8
}

fn signed(storage: Storage) -> i64 {
    i64::try_from(storage.bytes).unwrap_or(i64::MAX)
}

// Parameters and modules are few enough for any integer.
#[allow(clippy::cast_possible_truncation)]
fn number(parameter: ParameterId) -> u32 {
    parameter.index() as u32
}

impl Listener for Reader {
    fn allocate(&mut self, _id: StorageId, storage: Storage) {
        self.change(storage.category, signed(storage));
    }

    fn free(&mut self, _id: StorageId, storage: Storage) {
        self.change(storage.category, -signed(storage));
    }

    fn gradient(&mut self, parameter: ParameterId, _id: StorageId, storage: Storage) {
        let (parameter, counted_as) = (number(parameter), counted_as(storage));
        self.push(Item::Gradient { parameter, bytes: storage.bytes, counted_as });
    }

    fn part_of_gradient(&mut self, parameter: ParameterId, _id: StorageId, storage: Storage) {
        let (parameter, counted_as) = (number(parameter), counted_as(storage));
        self.push(Item::PartOfGradient { parameter, bytes: storage.bytes, counted_as });
    }

    fn hold(&mut self, parameter: ParameterId) {
        if self.gathers {
            self.push(Item::Hold(number(parameter)));
        }
    }

    fn let_go(&mut self, parameter: ParameterId) {
        if self.gathers {
            self.push(Item::LetGo(number(parameter)));
        }
    }

    #[allow(clippy::cast_possible_truncation)]
    fn module(&mut self, module: ModuleId, pass: Pass, edge: Edge) {
        let kind = match (pass, edge) {
            (Pass::Forward, Edge::Before) => EventKind::EnterForward,
            (Pass::Forward, Edge::After) => EventKind::LeaveForward,
            (Pass::Backward, Edge::Before) => EventKind::EnterBackward,
            (Pass::Backward, Edge::After) => EventKind::LeaveBackward,
        };
        self.push(Item::Module(Event { kind, module: module.index() as u32 }));
    }

    fn exchange(&mut self, call: Collective) {
        self.push(Item::Exchange(call));
    }

    fn offload(&mut self, copy: HostCopy) {
        self.push(Item::Offload(copy));
    }

    fn work(&mut self, work: Work) {
        self.swing.work += work;
    }

    fn layer_border(&mut self) {
        if self.cuts {
            self.flush();
            let length = self.items().len();
            self.borders[usize::from(self.is_backward)].push(length);
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Saved => {
                self.flush();
                self.is_backward = true;
            }
            Mark::Bypass => self.micro_step.bypasses_model = true,
            Mark::Begin => self.push(Item::Begin),
            Mark::Generate => self.push(Item::Generate),
            Mark::Generated => self.push(Item::Generated),
            Mark::Publish(publication) => self.push(Item::Publish(publication)),
            Mark::Score => self.push(Item::Score),
            Mark::Value => {
                self.push(Item::Value);
                self.micro_step.has_value_pass = true;
            }
            Mark::Reference => self.push(Item::Reference),
            Mark::Visit(model) => self.push(Item::Visit(model)),
            Mark::Loss => self.push(Item::Loss),
            Mark::Rolled => {
                self.flush();
                self.micro_step.once = self.micro_step.forward.len();
            }
            Mark::Head | Mark::ForwardDone | Mark::HeadDone | Mark::BackwardDone => {}
        }
    }
}

/// The parameters each module of a model gathers.
#[must_use]
pub fn modules(model: &Model) -> Modules {
    let gathered = model.gathered().map(|(module, parameter)| (module.index(), parameter.index()));
    Modules::new(model.modules.len(), &gathered.collect::<Vec<_>>())
}
