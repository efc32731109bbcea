//! Causal language models: a body, an output projection, the loss.

use super::build::{Builder, add_tops};
use super::layer::{Embedding, Linear, Split};
use super::part::Part;
use super::split_vocabulary;
use super::{Family, Output, Returns, Setup, leave_tops, leave_tops_with};
use crate::head::{Labels, LossHead, LossShards};
use crate::model::{Label, Model, Module};
use crate::shape::{Batch, Checkpoints};
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

    /// The final hidden states, and what else the body returns.
    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t>;

    fn layers(&self) -> usize;

    /// Call one layer; the first argument is the hidden states.
    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t>;

    /// Call a part that runs again in backward.
    fn call_part<'t>(&self, key: u32, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.call_layer(key as usize, arguments)
    }

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
            if setup.keeps_hidden {
                tape.keep(&x);
            }
            let mut arguments = others(index);
            arguments.insert(0, x.clone());
            let call = |arguments: &[Tensor<'t>]| self.call_layer(index, arguments);
            x = match (setup.switches.checkpointing, setup.long_context.checkpoints) {
                (true, Checkpoints::Reentrant) => {
                    tape.reentrant(key(index), false, &arguments, call)
                }
                (true, Checkpoints::OnHost) => tape.reentrant(key(index), true, &arguments, call),
                (is_checkpointed, _) => tape.part(key(index), is_checkpointed, arguments, call),
            };
        }
        tape.layer_border();
        x
    }
}

/// What a body returns.
#[derive(Debug)]
pub(super) struct Hidden<'t> {
    /// The final hidden states.
    pub(super) states: Tensor<'t>,
    /// Other parts of the output, which live as long as it.
    pub(super) rest: Vec<Tensor<'t>>,
}

impl<'t> From<Tensor<'t>> for Hidden<'t> {
    fn from(states: Tensor<'t>) -> Self {
        Self { states, rest: Vec::new() }
    }
}

/// The checkpoint key of layer `index`; models have few layers.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn key(index: usize) -> u32 {
    index as u32
}

/// The key of projection and loss, where they run shard by shard.
const LOSS_KEY: u32 = 1 << 25;

/// A causal language model around a body, among the modules of a program.
#[derive(Debug)]
pub(super) struct CausalLm<B> {
    setup: Setup,
    tops: Vec<Module>,
    container: Module,
    body: B,
    head: Linear,
}

impl<B: Body> CausalLm<B> {
    pub(super) fn new(model: &mut Model, setup: &Setup) -> Self {
        let tops = add_tops(model, &setup.training);
        let mut top = Builder::under(model, &setup.training, &tops);
        let (container, mut at) = top.inside(Label::Name(B::CONTAINER));
        let body = B::build(&mut at, setup);
        let shape = setup.shape;
        let ranks = setup.tensor.ranks;
        let split = match setup.tensor.splits_vocabulary {
            _ if ranks == 1 => Split::Whole,
            splits => Split::Outputs { ranks, is_joined: !splits },
        };
        let head = match setup.head {
            LossHead::Score => top.linear("score", shape.hidden, 1, false),
            _ if setup.is_tied() => top.tied_linear(B::HEAD, body.embedding()).shared(split),
            _ => top.linear(B::HEAD, shape.hidden, shape.vocabulary / ranks, false).shared(split),
        };
        if let (LossHead::Tiled, Some(&root)) = (setup.head, tops.last()) {
            // The head is not called: the model reads its weight, which stage 3 then gathers with the model itself.
            top.borrow(root, head.weight);
        }
        Self { setup: setup.clone(), tops, container, body, head }
    }
}

impl Setup {
    /// Layers at the beginning that differ from the others.
    pub(crate) fn first_layers(&self) -> u64 {
        let fed = self.vision().map_or(0, |vision| vision.deepstack.len() as u64);
        self.shape.dense_layers.max(fed)
    }

    /// Where the labels of a batch come from.
    fn labels(&self, batch: Batch) -> Labels {
        if self.shares_sequence() { Labels::Given } else { Labels::Shifted(batch) }
    }

    /// Ranks of which each has some rows of the embedding: those that share an output projection that is the same.
    pub(crate) fn embedding_ranks(&self) -> u64 {
        let splits = self.tensor.splits_vocabulary && self.is_tied();
        if splits { self.tensor.ranks } else { 1 }
    }

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
                | Family::Whisper
        );
        self.switches.tied.unwrap_or(by_default)
    }
}

impl<B: Body> Rerun for CausalLm<B> {
    fn rerun<'t>(&self, key: u32, arguments: Vec<Tensor<'t>>) -> Option<Tensor<'t>> {
        Some(match key {
            LOSS_KEY => self.shard_loss(&arguments[0]),
            _ => self.body.call_part(key, &arguments),
        })
    }
}

impl<B: Body> Part for CausalLm<B> {
    fn forward<'t>(&self, tape: &'t Tape) -> Output<'t> {
        if self.setup.shares_sequence() {
            tape.load_sequence(&self.setup);
        }
        let Output { loss, rest } = self.own_loss(tape);
        let loss = if self.setup.shares_sequence() {
            loss.shared_loss(self.setup.long_context.sequence_ranks)
        } else {
            loss
        };
        Output { loss, rest }
    }

    fn call<'t>(&self, tape: &'t Tape, returns: Returns) -> Vec<Tensor<'t>> {
        let Hidden { states: hidden, rest } = self.hidden(tape);
        tape.mark(Mark::Head);
        let mut outputs = match returns {
            Returns::Logits => vec![self.logits(&hidden, None)],
            Returns::LastLogits(kept) => vec![self.logits(&hidden, Some(kept))],
            Returns::LogitsAndLoss => {
                let logits = self.logits(&hidden, None);
                let loss = tape.causal_loss(&logits, self.setup.labels(self.setup.batch), None);
                vec![logits, loss]
            }
            Returns::LogProbabilities(outputs) => {
                tape.tiled_scores(&hidden, self.head.weight, &self.setup, outputs)
            }
            Returns::Score => {
                let scores = self.head.call(&hidden);
                let last = tape.index_tensor(self.setup.batch.sequences);
                vec![scores.pick(&last, self.setup.batch.sequences)]
            }
        };
        drop(hidden);
        outputs.extend(rest);
        for &top in self.tops.iter().rev() {
            tape.leave_silently(top);
            outputs = outputs.iter().map(|output| tape.wrap_output(top, output)).collect();
        }
        outputs
    }

    fn values<'t>(&self, tape: &'t Tape) -> Tensor<'t> {
        let Hidden { states: hidden, rest } = self.container(tape);
        let values = self.head.call(&hidden);
        drop((hidden, rest));
        values
    }
}

impl<B: Body> CausalLm<B> {
    /// The model and the loss of this rank's tokens.
    fn own_loss<'t>(&self, tape: &'t Tape) -> Output<'t> {
        let Setup { head, batch, shape, .. } = self.setup;
        if let LossHead::SequenceTiled(shards) | LossHead::TiledFused(shards) = head {
            let rest = Vec::new();
            return Output { loss: self.loss_in_shards(tape, shards), rest };
        }
        let items = (head == LossHead::ItemsInBatch).then(|| tape.index_tensor(1));
        let Hidden { states: hidden, mut rest } = self.hidden(tape);
        tape.mark(Mark::Head);
        if head.is_fused() {
            let copies = head == LossHead::FusedWithCopies;
            let loss = tape.call_by_keyword(self.head.module, || {
                tape.fused_loss(&hidden, self.head.weight, shape.hidden, copies)
            });
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest });
        }
        if head == LossHead::Tiled {
            let loss = tape.tiled_loss(&hidden, self.head.weight, &self.setup);
            drop(hidden);
            return leave_tops(tape, &self.tops, Output { loss, rest });
        }
        let kept = match head {
            LossHead::LogitsToKeep(kept) => Some(kept),
            _ => None,
        };
        let logits = self.logits(&hidden, kept);
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
            rest.insert(0, logits);
            return leave_tops(tape, &self.tops, Output { loss, rest });
        }
        if head.is_inside_model() {
            let loss = if self.setup.tensor.splits_vocabulary {
                let ranks = self.setup.tensor.ranks;
                split_vocabulary::causal_loss(&logits, batch, items.as_ref(), ranks)
            } else {
                tape.causal_loss(&logits, self.setup.labels(head.cut(batch)), items.as_ref())
            };
            drop(hidden);
            rest.insert(0, logits);
            return leave_tops(tape, &self.tops, Output { loss, rest });
        }
        drop(hidden);
        let logits = leave_tops_with(tape, &self.tops, logits);
        let loss = tape.loss_outside_model(head, &logits, batch, shape.vocabulary);
        rest.insert(0, logits);
        Output { loss, rest }
    }

    /// The loss of a script that calls the body, then DeepSpeed's function that computes projection and loss in shards.
    fn loss_in_shards<'t>(&self, tape: &'t Tape, shards: LossShards) -> Tensor<'t> {
        let Setup { head, batch, shape, .. } = self.setup;
        tape.mark(Mark::Bypass);
        let Hidden { states: hidden, .. } = self.container(tape);
        tape.mark(Mark::Head);
        let shards = shards.cut(batch.tokens(), shape.vocabulary, shape.hidden);
        if let LossHead::TiledFused(_) = head {
            return tape.sum_and_gradient_in_shards(LOSS_KEY, &hidden, &shards, self);
        }
        tape.sum_in_shards(LOSS_KEY, &hidden, shards, |shard| self.shard_loss(shard))
    }

    /// Projection and loss of some tokens.
    fn shard_loss<'t>(&self, hidden: &Tensor<'t>) -> Tensor<'t> {
        let logits = self.head.call(hidden);
        hidden.tape().causal_loss(&logits, Labels::Given, None)
    }

    /// Enters the modules above the body and runs it.
    fn hidden<'t>(&self, tape: &'t Tape) -> Hidden<'t> {
        for &top in &self.tops {
            tape.enter_silently(top);
        }
        self.container(tape)
    }

    /// Runs the body.
    fn container<'t>(&self, tape: &'t Tape) -> Hidden<'t> {
        tape.enter_silently(self.container);
        let Hidden { states, rest } = self.body.run(&self.setup, tape);
        tape.leave_silently(self.container);
        let hidden = tape.wrap_output(self.container, &states);
        drop(states);
        let rest = rest.iter().map(|tensor| tape.wrap_output(self.container, tensor)).collect();
        if self.setup.keeps_hidden {
            tape.keep(&hidden);
        }
        Hidden { states: hidden, rest }
    }

    /// The logits, perhaps only of the last positions of each sequence.
    fn logits<'t>(&self, hidden: &Tensor<'t>, kept: Option<u64>) -> Tensor<'t> {
        let batch = self.setup.batch;
        let hidden = match kept.filter(|&kept| kept < batch.length) {
            Some(kept) => {
                let last = hidden.slice(batch.sequences * kept * self.setup.shape.hidden);
                // The rows of several sequences are apart: the projection copies them together.
                if batch.sequences > 1 { last.copy() } else { last }
            }
            None => hidden.clone(),
        };
        let logits = self.head.call(&hidden);
        hidden.tape().mark_backward(&logits, Mark::HeadDone);
        self.body.shape_logits(&self.setup, logits)
    }
}
