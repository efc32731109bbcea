//! A vocabulary that ranks share: each has the rows of its words (DeepSpeed's `VocabParallelEmbedding` and
//! `VocabParallelCausalLMLoss`).

use crate::model::Parameter;
use crate::primitive::operation;
use crate::shape::Batch;
use crate::tape::{Category, Formula, TapeOperation, Tensor};

/// The embedding of all words: a rank looks up those it has, and the sum has all.
pub(super) fn look_up<'t>(
    ids: &Tensor<'t>,
    weight: Parameter,
    width: u64,
    ranks: u64,
) -> Tensor<'t> {
    let tape = ids.tape();
    let is_elsewhere = tape.fresh(ids.elements(), 1, Category::Index);
    let own = {
        let _moved = tape.index_tensor(ids.elements());
        tape.index_tensor(ids.elements())
    };
    let kept = {
        let rows = own.look_up(weight, width);
        rows.where_mask(&is_elsewhere)
    };
    kept.sum_over(ranks)
}

/// The loss of logits of which every rank has those of its words: ranks agree on the largest logit, the sum of all
/// exponentials and the logit of the label.
pub(super) fn causal_loss<'t>(
    logits: &Tensor<'t>,
    batch: Batch,
    items: Option<&Tensor<'t>>,
    ranks: u64,
) -> Tensor<'t> {
    let tape = logits.tape();
    let predicted = batch.sequences * batch.length.saturating_sub(1);
    let elements = logits.elements() / batch.tokens().max(1) * predicted;
    // Rows of several sequences are apart: labels and logits are copied together.
    let is_copied = batch.sequences > 1;
    let _labels = is_copied.then(|| tape.index_tensor(predicted));
    let cut = logits.slice(elements);
    let cut = if is_copied { cut.copy() } else { cut };
    let is_narrow = cut.element_bytes() != 4;
    let _wide = is_narrow.then(|| tape.fresh(elements, 4, Category::Loss));
    let reduce = || cut.reduce_over(predicted, 4, ranks);
    let _largest = tape.fresh(2 * predicted, 4, Category::Loss);
    reduce();
    let losses = {
        let _shifted = tape.fresh(elements, 4, Category::Loss);
        // The exponentials; of a token their sum, its place among this rank's words, whether it is there and counts.
        let kept = [elements * 4, predicted * (4 + 8 + 1 + 1)];
        // The gradient is made in 32 bits.
        let scratch = is_narrow.then(|| tape.keep_scratch(vec![elements * 4]));
        let inputs = [cut.input()];
        let operation = TapeOperation {
            category: Category::Loss,
            ..operation(Formula::FreshAll(scratch), &inputs, &[])
        };
        tape.record(&operation, predicted, 4, false, &kept)
    };
    reduce();
    reduce();
    let sum = losses.sum(predicted);
    let valid = tape.fresh(1, 4, Category::Loss);
    sum.divide_by_count(items.unwrap_or(&valid))
}
