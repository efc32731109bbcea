//! Causal language models: a body, an output projection, the loss.

use super::build::{Builder, add_tops};
use super::layer::{Embedding, Linear};
use super::{Family, Output, Program, Setup, leave_tops, leave_tops_with};
use crate::head::LossHead;
use crate::model::{Label, Model, Module};
use crate::tape::{Mark, Rerun, Tape, Tensor};

/// Everything between the token ids and the final hidden states.
pub(super) trait Body: Sized + std::fmt::Debug + Send + Sync {
    /// Name of the module that holds the body.
    const CONTAINER: &'static str;
    /// Name of the output projection.
    const HEAD: &'static str = "lm_head";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self;

    /// The embedding a tied output projection shares.
    fn embedding(&self) -> &Embedding;

    /// The final hidden states.
    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Tensor<'t>;

    fn layers(&self) -> usize;

    /// Call one layer; the first argument is the hidden states.
    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t>;

    /// What the model does with the logits before the loss.
    fn shape_logits<'t>(&self, _setup: &Setup, logits: Tensor<'t>) -> Tensor<'t> {
        logits
    }

    /// Call all layers, each on the output of the one before and on what `others` gives it besides.
    fn run_layers<'t>(
        &self,
        setup: &Setup,
        first: Tensor<'t>,
        others: impl Fn(usize) -> Vec<Tensor<'t>>,
    ) -> Tensor<'t> {
        let tape = first.tape();
        let mut x = first;
        for index in 0..self.layers() {
            tape.layer_border();
            let mut arguments = others(index);
            arguments.insert(0, x.clone());
            x = if setup.switches.checkpointing {
                tape.checkpoint(key(index), arguments, |arguments| {
                    self.call_layer(index, &arguments)
                })
            } else {
                self.call_layer(index, &arguments)
            };
        }
        tape.layer_border();
        x
    }
}

/// The checkpoint key of layer `index`; models have few layers.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn key(index: usize) -> u32 {
    index as u32
}

/// A causal language model around a body.
#[derive(Debug)]
pub(super) struct CausalLm<B> {
    model: Model,
    setup: Setup,
    tops: Vec<Module>,
    container: Module,
    body: B,
    head: Linear,
}

impl<B: Body> CausalLm<B> {
    pub(super) fn new(setup: &Setup) -> Self {
        let mut model = Model::default();
        let tops = add_tops(&mut model, &setup.training);
        let mut top = Builder::under(&mut model, &setup.training, &tops);
        let (container, mut at) = top.inside(Label::Name(B::CONTAINER));
        let body = B::build(&mut at, setup);
        let shape = setup.shape;
        let head = if setup.is_tied() {
            top.tied_linear(B::HEAD, body.embedding())
        } else {
            top.linear(B::HEAD, shape.hidden, shape.vocabulary, false)
        };
        Self { model, setup: setup.clone(), tops, container, body, head }
    }
}

impl Setup {
    /// Whether the output projection shares the embedding's weight.
    pub(super) fn is_tied(&self) -> bool {
        let by_default = matches!(
            self.family,
            Family::Gemma2
                | Family::Gemma3
                | Family::Gpt2
                | Family::Opt
                | Family::Bloom
                | Family::Falcon
                | Family::T5
        );
        self.switches.tied.unwrap_or(by_default)
    }
}

impl<B: Body> Rerun for CausalLm<B> {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) {
        let _ = self.body.call_layer(key as usize, &arguments);
    }
}

impl<B: Body> Program for CausalLm<B> {
    fn model(&self) -> &Model {
        &self.model
    }

    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        let Setup { head, batch, shape, .. } = self.setup;
        let items = (head == LossHead::ItemsInBatch).then(|| tape.index_tensor(1));
        for &top in &self.tops {
            tape.enter_silently(top);
        }
        let hidden = tape.call_by_keyword(self.container, || self.body.run(&self.setup, tape));
        tape.mark(Mark::Head);
        if head.is_fused() {
            let copies = head == LossHead::FusedWithCopies;
            let loss = tape.call_by_keyword(self.head.module, || {
                tape.fused_loss(&hidden, self.head.weight, shape.hidden, copies)
            });
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest: Vec::new() });
        }
        if head == LossHead::Tiled {
            let loss = tape.call_by_keyword(self.head.module, || {
                tape.tiled_loss(&hidden, self.head.weight, batch, shape.hidden)
            });
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest: Vec::new() });
        }
        let logits = self.logits(&hidden);
        if head.shifts_a_copy() {
            let logits = match head {
                // The variable is bound anew: the 16-bit logits go.
                LossHead::ShiftedCopy => {
                    let wide = logits.cast_loss(4);
                    drop(logits);
                    wide
                }
                _ => logits,
            };
            let loss = tape.shifted_loss(&logits, batch, shape.vocabulary);
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest: vec![logits] });
        }
        if head.is_inside_model() {
            let loss = tape.causal_loss(&logits, head.cut(batch), items.as_ref());
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest: vec![logits] });
        }
        drop(hidden);
        let logits = leave_tops_with(tape, &self.tops, logits);
        let loss = tape.loss_outside_model(head, &logits, batch, shape.vocabulary);
        Output { loss, rest: vec![logits] }
    }
}

impl<B: Body> CausalLm<B> {
    fn logits<'t>(&self, hidden: &Tensor<'t>) -> Tensor<'t> {
        let batch = self.setup.batch;
        let hidden = match self.setup.head {
            LossHead::LogitsToKeep(kept) if kept < batch.length => {
                let last = hidden.slice(batch.sequences * kept * self.setup.shape.hidden);
                // The rows of several sequences are apart: the projection copies them together.
                if batch.sequences > 1 { last.copy() } else { last }
            }
            _ => hidden.clone(),
        };
        let logits = self.head.call(&hidden);
        hidden.tape().mark_backward(&logits, Mark::HeadDone);
        self.body.shape_logits(&self.setup, logits)
    }
}
