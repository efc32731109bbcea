//! What ranks that share a sequence or a layer send each other while they compute.

use super::operation;
use crate::family::Setup;
use crate::model::Parameter;
use crate::tape::{Category, Formula, Input, Tape, Tensor};
use crate::zero::{Collective, CollectiveKind};

/// Groups are of a few thousand ranks at most.
#[allow(clippy::cast_possible_truncation)]
fn narrow(ranks: u64) -> u32 {
    ranks as u32
}

impl<'t> Tensor<'t> {
    /// Every rank gives each other rank a part of `self` and gets one of each. In backward the gradient is copied first
    /// where `copies` says that it does not lie in the order of the parts.
    #[must_use]
    pub fn all_to_all(&self, ranks: u64, copies: bool) -> Tensor<'t> {
        let inputs = [self.input()];
        let formula = Formula::AllToAll { ranks: narrow(ranks), copies };
        let operation = operation(formula, &inputs, &[]);
        let made = self.tape.record(&operation, self.elements, self.element_bytes, false, &[]);
        self.tape.exchange(Collective {
            kind: CollectiveKind::AllToAll,
            elements: self.elements,
            element: u64::from(self.element_bytes),
            ranks,
        });
        made
    }

    /// The loss of all ranks that share a sequence, from the loss of each and how many labels it has.
    #[must_use]
    pub fn shared_loss(&self, ranks: u64) -> Tensor<'t> {
        let gather = |element| Collective {
            kind: CollectiveKind::AllGather,
            elements: ranks,
            element,
            ranks,
        };
        let inputs = [self.input()];
        let operation = operation(Formula::GatherNumbers { ranks: narrow(ranks) }, &inputs, &[]);
        let gathered = self.tape.record(&operation, ranks, self.element_bytes, false, &[]);
        self.tape.exchange(gather(u64::from(self.element_bytes)));
        self.tape.exchange(gather(8));
        gathered.sum(ranks)
    }
}

impl<'t> Tensor<'t> {
    /// The same for every rank that shares a layer; in backward they add up the gradients that each has of it.
    #[must_use]
    pub(crate) fn shared_input(&self, ranks: u64) -> Tensor<'t> {
        let inputs = [self.input()];
        let formula = Formula::AllReduce { ranks: narrow(ranks) };
        self.tape.view_of(self, self.elements, &operation(formula, &inputs, &[]))
    }

    /// The sum of what every rank that shares a layer has, in place.
    #[must_use]
    pub(crate) fn sum_over(&self, ranks: u64) -> Tensor<'t> {
        self.reduce_over(self.elements, self.element_bytes, ranks);
        self.view()
    }

    /// What the ranks that share a layer have, side by side: gathered part by part, then joined row by row.
    #[must_use]
    pub(crate) fn join_over(&self, ranks: u64) -> Tensor<'t> {
        let elements = self.elements * ranks;
        let _gathered = self.tape.fresh(elements, self.element_bytes, Category::Activation);
        self.tape.exchange(Collective {
            kind: CollectiveKind::AllGather,
            elements,
            element: u64::from(self.element_bytes),
            ranks,
        });
        let inputs = [self.input()];
        let operation = operation(Formula::Fresh, &inputs, &[]);
        self.tape.record(&operation, elements, self.element_bytes, false, &[])
    }

    /// Ranks add up so many elements.
    pub(crate) fn reduce_over(&self, elements: u64, element_bytes: u8, ranks: u64) {
        self.tape.exchange(Collective {
            kind: CollectiveKind::AllReduce,
            elements,
            element: u64::from(element_bytes),
            ranks,
        });
    }
}

impl Parameter {
    /// This parameter as an input; where ranks share a layer and each uses it for a part, they add up its gradients.
    pub(super) fn input_among(self, tape: &Tape, ranks: u64) -> Input {
        let inputs = [self.input()];
        if ranks <= 1 {
            return self.input();
        }
        let formula = Formula::AllReduce { ranks: narrow(ranks) };
        Input { target: tape.node_for(&operation(formula, &inputs, &[])), ..self.input() }
    }
}

/// Tensors of a batch: token ids, positions, labels.
const BATCH_TENSORS: u64 = 3;

impl Tape {
    /// DeepSpeed's loader gathers the batches of all ranks that share a sequence, beside this rank's own.
    pub(crate) fn load_sequence(&self, setup: &Setup) {
        let ranks = setup.long_context.sequence_ranks;
        let whole = BATCH_TENSORS * setup.batch.tokens() * ranks;
        let _gathered = self.fresh((ranks + 1) * whole, 8, Category::Index);
    }

    /// All ranks of a run agree on a number.
    pub(crate) fn agree(&self) {
        self.exchange(Collective {
            kind: CollectiveKind::AllReduce,
            elements: 1,
            element: 8,
            ranks: Collective::ALL_RANKS,
        });
    }

    /// The positions of a whole sequence from those of every rank: the parts, and the parts joined.
    pub(crate) fn gather_positions(&self, tokens: u64, ranks: u64) -> [Tensor<'_>; 2] {
        let parts = self.fresh(tokens * ranks, 8, Category::Index);
        self.exchange(Collective {
            kind: CollectiveKind::AllGather,
            elements: tokens * ranks,
            element: 8,
            ranks,
        });
        [parts, self.fresh(tokens * ranks, 8, Category::Index)]
    }
}
