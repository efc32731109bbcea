//! What `generate` of transformers holds at most.

use super::{Generation, Generator, Processing};
use crate::family::{Returns, Setup, build};
use crate::head::LossHead;
use crate::model::Model;
use crate::shape::Batch;
use crate::tape::{Event, Options, Tape, Trace};

/// Bytes for each logit of the token that is sampled, in 32 bits after its 16-bit logits: a copy, the softmax of it, and
/// the random numbers that choose from it.
const SAMPLING: u64 = 2 + 4 + 4 + 4;

impl Processing {
    fn bytes_per_logit(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Temperature => 4,
            Self::LeastLength => 16,
        }
    }
}

impl Generation {
    /// Sequences that a rank generates at once, with so many in a micro batch.
    #[must_use]
    pub fn sequences(self, micro_batch: u64) -> u64 {
        self.micro_batches.max(1).saturating_mul(micro_batch)
    }

    /// Sequences that it generates and judges at once.
    #[must_use]
    pub fn piece(self, micro_batch: u64) -> u64 {
        let all = self.sequences(micro_batch);
        self.at_once.map_or(all, |most| most.clamp(1, all.max(1)))
    }

    /// Elements of the logits that are kept of it.
    pub(super) fn kept_logits(self, micro_batch: u64, vocabulary: u64) -> u64 {
        let sequences = if self.keeps_logits { self.sequences(micro_batch) } else { 0 };
        sequences * self.completion * vocabulary
    }
}

/// The highest point: sampling of the last token, when the cache is full, or the layers on the prompt. Where logits are
/// kept it may be when those of a piece are put together, or those of all pieces; those of the generation before are
/// alive until then.
pub(crate) fn generation_bytes(
    generation: Generation,
    setup: &Setup,
    model: &Model,
    options: Options,
) -> u64 {
    let Generation { prompt, completion, by, processing, .. } = generation;
    let Generator::Model { gathers } = by else { return 0 };
    let micro_batch = setup.batch.sequences;
    let sequences = generation.piece(micro_batch);
    let shape = setup.shape;
    let element = u64::from(setup.training.element_bytes);
    let cached = prompt + completion.saturating_sub(1);
    let cache = 2 * shape.layers * sequences * cached * shape.kv_heads * shape.head_width * element;
    let of_logit = SAMPLING + processing.bytes_per_logit();
    let ids = sequences * (2 * (prompt + completion) + prompt) * 8;
    let sampling = sequences * shape.vocabulary * of_logit + ids;
    let largest = model.parameters.iter().map(|info| info.parameter.elements).max().unwrap_or(0);
    let gathered = if options.module_events && !gathers { largest * element } else { 0 };
    let all = generation.kept_logits(micro_batch, shape.vocabulary) * 4;
    let of_piece = all / generation.sequences(micro_batch).max(1) * sequences;
    let running = (cache + sampling + of_piece)
        .max(cache + 2 * of_piece)
        .max(prefill_bytes(generation, setup, options));
    let earlier = all - of_piece;
    all + (earlier + running + gathered).max(2 * all)
}

fn prefill_bytes(generation: Generation, setup: &Setup, options: Options) -> u64 {
    let prompt = generation.prompt;
    let sequences = generation.piece(setup.batch.sequences);
    let batch = Batch { sequences, length: prompt, target_length: prompt };
    let head = LossHead::Model;
    let setup = Setup { batch, head, keeps_cache: true, keeps_hidden: false, ..setup.clone() };
    let program = build(&setup);
    let tape = Tape::new(Options { module_events: false, zero3_linear: false, ..options });
    drop(tape.no_grad(|| program.call(&tape, Returns::LastLogits(1))));
    tape.drop_kept();
    highest(&tape.into_trace())
}

/// The most bytes that are alive in a trace at once.
fn highest(trace: &Trace) -> u64 {
    let (mut alive, mut most) = (0_u64, 0_u64);
    for event in &trace.events {
        match *event {
            Event::Allocate(id) => alive += trace.storages[id.index()].bytes,
            Event::Free(id) => alive -= trace.storages[id.index()].bytes,
            _ => {}
        }
        most = most.max(alive);
    }
    most
}
