//! Loss heads: from the logits to the loss.

use crate::family::{FusedOutputs, Setup};
use crate::model::Parameter;
use crate::shape::Batch;
use crate::tape::{Arithmetic, Category, Formula, Kernels, Tape, TapeOperation, Tensor};
use crate::task::labelled;
use serde::Deserialize;

/// How the loss is computed from the logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossHead {
    /// What the model computes when it is given labels.
    #[default]
    Model,
    /// The same, divided by a given number of items instead of averaged.
    ItemsInBatch,
    /// Logits only for the last positions of each sequence, labels cut to match.
    LogitsToKeep(u64),
    /// The trainer's label smoothing, outside the model.
    TrainerSmoothing,
    /// Cross entropy with label smoothing on shifted 32-bit logits, outside the model.
    SmoothedCrossEntropy,
    /// What transformers computed before 4.49 (February 2025): 32-bit logits that are returned, shifted by a copy. From
    /// its code; not measured.
    ShiftedCopy,
    /// What model code without a cast to 32 bits computes (Qwen's first generation): 16-bit logits, shifted by a copy.
    /// From its code; not measured.
    NarrowShiftedCopy,
    /// Projection and cross entropy in one kernel (Liger): logits exist only chunk by chunk, and the gradients are
    /// made in forward. From its code (0.8.5); not run on a GPU by us.
    Fused,
    /// The same with a copy of the weight's gradient for every chunk, and that copy in 32 bits: `grad_weight +=
    /// torch.mm(…).float()` of Liger 0.6 to 0.8.0.
    FusedWithCopies,
    /// TRL's head from 1.15 on (`add_fused_lm_head`): logits exist tile by tile in forward and again in backward, which adds
    /// the gradients up in 32 bits. Measured on CPU ranks; on a GPU from its code, with every label valid.
    Tiled,
    /// DeepSpeed's `sequence_tiled_compute` around projection and loss: logits exist shard by shard in forward and again in
    /// backward. The script calls the model's body and then this, so that the model itself never runs.
    SequenceTiled(LossShards),
    /// DeepSpeed's `TiledFusedLogitsLoss`, called in the same way: forward goes through each shard and back at once.
    TiledFused(LossShards),
    /// One number for each sequence instead of logits: a reward model, whose loss is that of its task.
    Score,
}

/// How many shards a loss is computed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossShards {
    /// So many.
    Count(u64),
    /// As many that the 32-bit logits of one take a gibibyte at most, as ArcticTraining does it.
    Gibibyte,
}

impl LossShards {
    const GIBIBYTE: u64 = 1 << 30;

    /// Elements of the hidden states of each shard.
    pub(crate) fn cut(self, rows: u64, vocabulary: u64, width: u64) -> Vec<u64> {
        let count = match self {
            Self::Count(count) => count.max(1),
            Self::Gibibyte => (rows * vocabulary * 4).div_ceil(Self::GIBIBYTE).max(1),
        };
        let each = rows.div_ceil(count).max(1);
        (0..rows.div_ceil(each)).map(|shard| each.min(rows - shard * each) * width).collect()
    }
}

impl LossHead {
    /// Whether the model itself computes the loss.
    #[must_use]
    pub fn is_inside_model(self) -> bool {
        !matches!(self, Self::TrainerSmoothing | Self::SmoothedCrossEntropy)
    }

    /// Whether logits are shifted by a copy.
    #[must_use]
    pub fn shifts_a_copy(self) -> bool {
        matches!(self, Self::ShiftedCopy | Self::NarrowShiftedCopy)
    }

    /// Whether the script calls the model's body and DeepSpeed's loss instead of the model: stage 3 then never learns the
    /// order of modules.
    #[must_use]
    pub fn bypasses_model(self) -> bool {
        matches!(self, Self::SequenceTiled(_) | Self::TiledFused(_))
    }

    /// Whether projection and cross entropy are one kernel.
    #[must_use]
    pub fn is_fused(self) -> bool {
        matches!(self, Self::Fused | Self::FusedWithCopies)
    }

    /// The batch as the loss sees it.
    pub(crate) fn cut(self, batch: Batch) -> Batch {
        match self {
            Self::LogitsToKeep(kept) => Batch { length: kept.min(batch.length), ..batch },
            _ => batch,
        }
    }
}

/// Where the labels of next tokens come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Labels {
    /// The model shifts those of a batch.
    Shifted(Batch),
    /// The batch has them shifted: of a part of a sequence the next token may be on another rank.
    Given,
}

/// Labels padded at the end and cut at the front.
struct ShiftedLabels<'t> {
    _padded: Tensor<'t>,
    used: Tensor<'t>,
}

/// Rows of logits the fused kernel makes at a time: as many that they take what the hidden states take.
fn fused_chunk(rows: u64, hidden: u64, vocabulary: u64) -> u64 {
    let chunks = vocabulary.div_ceil(hidden.max(1)).max(1);
    rows.div_ceil(chunks).next_power_of_two()
}

/// Logits that exist at a time in TRL's head.
#[derive(Debug, Clone, Copy)]
struct Tile {
    rows: u64,
    columns: u64,
}

impl Tile {
    const ROWS: u64 = 4096;
    const COLUMNS: u64 = 32_768;

    fn of(rows: u64, vocabulary: u64) -> Self {
        Self { rows: rows.min(Self::ROWS), columns: vocabulary.min(Self::COLUMNS) }
    }

    /// Elements of its buffer, which is as wide for every vocabulary.
    fn allocated(self) -> u64 {
        self.rows * Self::COLUMNS
    }

    /// What PyTorch's own operators hold beside it, of so many bytes for each logit.
    fn in_torch(self, bytes: u64) -> u64 {
        bytes * self.rows * self.columns
    }

    /// Elements of the factors that autocast casts.
    fn cast(self, tape: &Tape, hidden: &Tensor<'_>, width: u64) -> u64 {
        let casts = tape.casts_products() && hidden.element_bytes() == 4;
        if casts { (self.rows + self.columns) * width } else { 0 }
    }
}

/// Positions that have a next token.
fn tiled_rows(batch: Batch) -> u64 {
    batch.sequences * batch.length.saturating_sub(1).max(1)
}

impl Tape {
    /// Projection and loss in one: the gradients of the hidden states and of the weight wait for backward.
    pub(crate) fn fused_loss<'t>(
        &'t self,
        hidden: &Tensor<'t>,
        weight: Parameter,
        width: u64,
        copies: bool,
    ) -> Tensor<'t> {
        let (rows, vocabulary) = (hidden.elements() / width, weight.elements / width);
        let chunk = fused_chunk(rows, width, vocabulary) * vocabulary;
        {
            let _logits = self.fresh(chunk, hidden.element_bytes(), Category::Loss);
            if copies && weight.is_trainable {
                let product = self.fresh(weight.elements, hidden.element_bytes(), Category::Loss);
                let _wide = product.cast_loss(4);
            }
        }
        let bytes = u64::from(hidden.element_bytes());
        let of_weight = if weight.is_trainable { weight.elements * bytes } else { 0 };
        let inputs = [hidden.input(), weight.input()];
        let operation = TapeOperation {
            formula: Formula::Made,
            inputs: &inputs,
            saved_inputs: &[],
            saves_late: false,
            category: Category::Loss,
            // The gradients are made in forward.
            arithmetic: Arithmetic::Pieces(6 * rows * weight.elements),
        };
        self.record(&operation, 1, 4, false, &[hidden.elements() * bytes, of_weight])
    }

    /// Projection and loss of TRL: per-token log-probabilities, tile by tile.
    pub(crate) fn tiled_loss<'t>(
        &'t self,
        hidden: &Tensor<'t>,
        weight: Parameter,
        setup: &Setup,
    ) -> Tensor<'t> {
        let outputs = FusedOutputs { entropy: true, mean: false, top1: true };
        let mask = self.fresh(tiled_rows(setup.batch), 1, Category::Index);
        let log_probabilities = self.tiles(hidden, weight, setup, outputs);
        let log_probabilities = log_probabilities.fill_in_place(&mask);
        let count = self.index_tensor(1);
        log_probabilities.neg().sum(log_probabilities.elements()).divide_by_count(&count)
    }

    /// What TRL's head returns: log-probabilities, then what else was asked for, then which positions have a label.
    pub(crate) fn tiled_scores<'t>(
        &'t self,
        hidden: &Tensor<'t>,
        weight: Parameter,
        setup: &Setup,
        outputs: FusedOutputs,
    ) -> Vec<Tensor<'t>> {
        let rows = tiled_rows(setup.batch);
        let mask = self.fresh(rows, 1, Category::Index);
        let log_probabilities = self.tiles(hidden, weight, setup, outputs);
        let mut returned = vec![{
            let unlabelled = self.fresh(rows, 1, Category::Index);
            log_probabilities.where_mask(&unlabelled)
        }];
        let FusedOutputs { entropy, mean, top1 } = outputs;
        for (is_returned, bytes) in [(entropy, 4), (mean, 4), (top1, 1)] {
            returned.extend(is_returned.then(|| self.fresh(rows, bytes, Category::Loss)));
        }
        returned.push(mask);
        returned
    }

    /// Log-probabilities of the labels, tile by tile.
    fn tiles<'t>(
        &'t self,
        hidden: &Tensor<'t>,
        weight: Parameter,
        setup: &Setup,
        outputs: FusedOutputs,
    ) -> Tensor<'t> {
        let (batch, width) = (setup.batch, setup.shape.hidden);
        let is_on_gpu = self.options().kernels == Kernels::Cuda;
        let all = tiled_rows(batch);
        let rows = match is_on_gpu {
            true => batch.sequences * labelled(setup.completion, batch.length).max(1),
            false => all,
        };
        let tile = Tile::of(rows, weight.elements / width);
        let shifted = hidden.slice(all * width);
        // Valid rows are picked on a GPU. Elsewhere all are scored: those of several sequences are copied together.
        let scored = match is_on_gpu {
            true => shifted.gather_rows(&self.index_tensor(rows), width),
            false if batch.sequences > 1 => shifted.copy(),
            false => shifted,
        };
        let targets = self.index_tensor(rows);
        let bytes = if self.casts_products() { 2 } else { hidden.element_bytes() };
        {
            let _statistics = self.fresh(7 * rows, 4, Category::Loss);
            let _logits = self.fresh(tile.allocated(), bytes, Category::Loss);
            let _cast = self.fresh(tile.cast(self, hidden, width), 2, Category::Loss);
            // Places of targets in the tile, the new maxima and how they rescale, beside the logits.
            let written_out = tile.in_torch(12 + u64::from(outputs.top1)) + 20 * tile.rows;
            let _torch = (!is_on_gpu).then(|| self.fresh(written_out, 1, Category::Loss));
        }
        let mut scratch = vec![tile.allocated() * u64::from(bytes)];
        if is_on_gpu {
            scratch.push(tile.cast(self, hidden, width) * 2);
        } else {
            // Without kernels of its own the softmax is written out; then the factors are cast for the sum in 32 bits.
            let widened = if bytes == 4 { 0 } else { 4 * (tile.rows + width) * tile.columns };
            scratch.push(tile.in_torch(29).max(widened));
        }
        let formula = Formula::Tiled(self.keep_scratch(scratch));
        let inputs = [scored.input(), weight.input()];
        let saved = [scored.storage, targets.storage];
        let operation = TapeOperation {
            formula,
            inputs: &inputs,
            saved_inputs: &saved,
            saves_late: false,
            category: Category::Loss,
            arithmetic: Arithmetic::Pieces(2 * rows * weight.elements),
        };
        // The normaliser is saved, and the entropy where it is computed.
        let extra = [4 * rows, 4 * rows];
        let kept = if outputs.entropy { &extra[..] } else { &extra[..1] };
        self.record(&operation, rows, 4, false, kept)
    }

    /// The default loss of causal language models: 32-bit logits, labels shifted by padding.
    /// `items` is the number to divide by, if it is given from outside.
    pub(crate) fn causal_loss<'t>(
        &'t self,
        logits: &Tensor<'t>,
        labels: Labels,
        items: Option<&Tensor<'t>>,
    ) -> Tensor<'t> {
        let wide = logits.cast_loss(4);
        let shifted = match labels {
            Labels::Shifted(batch) => Some(self.shifted_labels(batch)),
            Labels::Given => None,
        };
        let given = self.outside(logits.elements(), 8);
        let mut loss = {
            let log_probabilities = wide.log_softmax();
            log_probabilities.nll(shifted.as_ref().map_or(&given, |labels| &labels.used))
        };
        if let Some(items) = items {
            loss = loss.divide_by_count(items);
        }
        loss
    }

    /// The loss of older releases, on logits as they are. PyTorch's cross entropy hands its input's own format to
    /// `log_softmax`; autocast then casts what `nll_loss` gets.
    pub(crate) fn shifted_loss<'t>(
        &'t self,
        logits: &Tensor<'t>,
        batch: Batch,
        vocabulary: u64,
    ) -> Tensor<'t> {
        let predicted = batch.sequences * batch.length.saturating_sub(1);
        let shifted = logits.slice(predicted * vocabulary).copy();
        let labels = self.index_tensor(predicted);
        let mut log_probabilities = shifted.log_softmax();
        if self.casts_products() {
            log_probabilities = log_probabilities.cast_loss(4);
        }
        log_probabilities.nll(&labels)
    }

    /// A copy when there are several sequences, a view of the padded labels otherwise.
    fn shifted_labels(&self, batch: Batch) -> ShiftedLabels<'_> {
        let padded = self.index_tensor(batch.sequences * (batch.length + 1));
        let used =
            if batch.sequences > 1 { self.index_tensor(batch.tokens()) } else { padded.clone() };
        ShiftedLabels { _padded: padded, used }
    }

    /// Cross entropy in the element type of the logits, with the labels of the batch.
    pub(crate) fn plain_cross_entropy<'t>(&'t self, logits: &Tensor<'t>) -> Tensor<'t> {
        let labels = self.outside(logits.elements(), 8);
        let log_probabilities = logits.log_softmax();
        log_probabilities.nll(&labels)
    }

    /// The loss of a head outside the model, on the logits the model has returned.
    pub(crate) fn loss_outside_model<'t>(
        &'t self,
        head: LossHead,
        logits: &Tensor<'t>,
        batch: Batch,
        vocabulary: u64,
    ) -> Tensor<'t> {
        let predicted = batch.sequences * (batch.length - 1);
        let shifted = logits.slice(predicted * vocabulary);
        match head {
            LossHead::SmoothedCrossEntropy => {
                let wide = shifted.cast_loss(4);
                self.smoothed_cross_entropy(&wide, predicted, vocabulary)
            }
            _ => {
                let copied = shifted.copy();
                self.trainer_smoothing(&copied, predicted, vocabulary)
            }
        }
    }

    fn trainer_smoothing<'t>(
        &'t self,
        logits: &Tensor<'t>,
        predicted: u64,
        vocabulary: u64,
    ) -> Tensor<'t> {
        let mut labels = self.index_tensor(predicted);
        let surprises = {
            let log_probabilities = logits.log_softmax();
            log_probabilities.neg()
        };
        let padding = self.fresh(predicted, 1, Category::Index);
        labels = {
            let _signed = labels;
            self.index_tensor(predicted)
        };
        let mut nll = surprises.gather_elements(&labels);
        let mut smoothed = surprises.sum_in_fp32(vocabulary);
        nll = nll.fill_in_place(&padding);
        smoothed = smoothed.fill_in_place(&padding);
        let active = {
            let padded = {
                let _wide = self.index_tensor(predicted);
                self.index_tensor(1)
            };
            let active = self.index_tensor(1);
            drop(padded);
            active
        };
        nll = nll.mean_over(&active, predicted);
        smoothed = {
            let total = smoothed.sum(predicted);
            let places = self.index_tensor(1);
            total.divide_by_count(&places)
        };
        let (left, right) = (nll.scale(), smoothed.scale());
        left.add(&right)
    }

    fn smoothed_cross_entropy<'t>(
        &'t self,
        logits: &Tensor<'t>,
        predicted: u64,
        vocabulary: u64,
    ) -> Tensor<'t> {
        let labels = self.index_tensor(predicted);
        let log_probabilities = logits.log_softmax();
        let nll = log_probabilities.nll(&labels);
        let mut smoothed = {
            let sum = log_probabilities.sum(vocabulary);
            sum.neg()
        };
        let ignored = self.fresh(predicted, 1, Category::Index);
        smoothed = smoothed.fill_in_place(&ignored);
        let mean = {
            let _counted = self.fresh(predicted, 1, Category::Index);
            let count = self.index_tensor(1);
            smoothed.mean_over(&count, predicted)
        };
        let (left, right) = (nll.scale(), mean.scale());
        left.add(&right)
    }
}
