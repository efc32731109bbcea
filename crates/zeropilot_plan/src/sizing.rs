//! Values that follow from the model and the link instead of being copied.
//!
//! The formulas without a link are those HF Trainer fills `"auto"` with, so that a file for the bare engine and
//! one for the Trainer do the same: a bucket of `hidden²` elements is one square matrix of the model.

use zeropilot_model::Model;
use zeropilot_units::{ElementSize, Elements};

use crate::knob::{Knob, Knobs};
use crate::zero::{Device, Zero};

/// The sizes of a model that buckets are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelSize {
    /// Width of the residual stream.
    pub hidden: u64,
    /// All parameters.
    pub parameters: Elements,
    /// The largest single parameter, which is usually the embedding.
    pub largest: Elements,
}

impl ModelSize {
    /// Of a model; `None` if its width is not known.
    pub fn of(model: &Model) -> Option<Self> {
        let hidden = model.dimensions()?.hidden_size;
        let largest = model.parameters().filter_map(|entry| entry.parameter.elements()).max()?;
        Some(Self { hidden, parameters: model.elements(), largest: Elements(largest) })
    }

    /// A bucket of one square matrix, if the model has so much.
    pub(crate) fn square(&self) -> Elements {
        Elements(self.hidden.saturating_mul(self.hidden).min(self.parameters.0))
    }

    /// Ten rows of a matrix, which norms and biases stay below.
    pub(crate) fn ten_rows(&self) -> Elements {
        Elements(self.hidden.saturating_mul(10))
    }
}

/// What connects a GPU with the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Bytes per second that one GPU sends in a collective.
    pub bandwidth: f64,
}

impl Link {
    /// The time a collective takes however little it carries, in seconds: a 32 KiB all-reduce takes about 40 µs
    /// inside a node (github.com/stas00/ml-engineering, network benchmarks).
    const FIXED_COST: f64 = 40e-6;

    /// Bytes for which nine tenths of a collective's time is spent on the wire.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of bytes"
    )]
    fn efficient_bytes(self) -> u64 {
        (9.0 * Self::FIXED_COST * self.bandwidth).ceil() as u64
    }
}

/// Why a key got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// One square matrix of the model: `hidden²`.
    SquareMatrix,
    /// Smaller than a square matrix, because the model has not more parameters.
    WholeModel,
    /// So much that the link is busy for nine tenths of a collective's time.
    LinkPayload,
    /// Nine tenths of the reduce bucket, as HF Trainer has it.
    NineTenths,
    /// `10 · hidden`: norms and biases stay gathered, because fetching them takes longer than keeping them.
    SmallParameters,
    /// The largest parameter's part on one rank must fit into a buffer.
    LargestPartition,
}

/// A key that was sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedKey {
    /// The key.
    pub knob: Knob,
    /// Its value.
    pub elements: Elements,
    /// Why.
    pub reason: Reason,
}

/// What a config is sized for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Circumstances {
    pub(crate) model: ModelSize,
    pub(crate) link: Option<Link>,
    pub(crate) world: Option<u64>,
    pub(crate) element: ElementSize,
}

/// Sizes what `knobs` does not say.
pub(crate) fn size(zero: &Zero, knobs: &Knobs, circumstances: &Circumstances) -> Vec<SizedKey> {
    let mut sized = Vec::new();
    let mut add = |knob, (elements, reason)| {
        if knobs.get(knob).is_none() {
            sized.push(SizedKey { knob, elements, reason });
        }
    };
    if *zero == Zero::Stage0 {
        return sized;
    }
    let reduce = reduce_bucket(circumstances);
    add(Knob::ReduceBucketSize, reduce);
    if let Zero::Stage3 { parameters, .. } = zero {
        let chosen = knobs.elements(Knob::ReduceBucketSize).unwrap_or(reduce.0);
        add(Knob::PrefetchBucketSize, (nine_tenths(chosen), Reason::NineTenths));
        let small = circumstances.model.ten_rows();
        add(Knob::ParamPersistenceThreshold, (small, Reason::SmallParameters));
        if parameters.as_ref().is_some_and(|offload| offload.device() == Device::Nvme) {
            add(Knob::ParamBufferSize, swap_buffer(circumstances));
        }
    }
    sized
}

fn reduce_bucket(circumstances: &Circumstances) -> (Elements, Reason) {
    let model = circumstances.model;
    let square = model.hidden.saturating_mul(model.hidden);
    let payload = circumstances
        .link
        .map_or(0, |link| link.efficient_bytes().div_ceil(circumstances.element.bytes()));
    let (wanted, reason) = if payload > square {
        (payload, Reason::LinkPayload)
    } else {
        (square, Reason::SquareMatrix)
    };
    if wanted > model.parameters.0 {
        // A bucket larger than all gradients is memory that is never filled.
        return (model.parameters, Reason::WholeModel);
    }
    (Elements(wanted), reason)
}

/// As Python computes `int(0.9 * hidden * hidden)` where the bucket is a square.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "smaller than the given number"
)]
pub(crate) fn nine_tenths(elements: Elements) -> Elements {
    let side = elements.0.isqrt();
    let exact = if side * side == elements.0 {
        0.9 * side as f64 * side as f64
    } else {
        0.9 * elements.0 as f64
    };
    Elements(exact as u64)
}

/// The engine swaps each parameter's partition through a buffer and refuses one that is larger.
fn swap_buffer(circumstances: &Circumstances) -> (Elements, Reason) {
    let ranks = circumstances.world.unwrap_or(1).max(1);
    (Elements(circumstances.model.largest.0.div_ceil(ranks)), Reason::LargestPartition)
}

#[cfg(test)]
mod tests {
    use zeropilot_model::catalogue;

    use super::*;

    fn circumstances(name: &str, link: Option<f64>) -> Circumstances {
        let model = catalogue::find(name).expect("in the catalogue").model().expect("a model");
        Circumstances {
            model: ModelSize::of(&model).expect("its width is known"),
            link: link.map(|bandwidth| Link { bandwidth }),
            world: Some(8),
            element: ElementSize::Two,
        }
    }

    fn stage_3(parameters: Option<&str>) -> Zero {
        let offload =
            |path: &str| crate::Offload { nvme_path: Some(path.to_owned()), pin_memory: true };
        Zero::Stage3 { optimizer: None, parameters: parameters.map(offload) }
    }

    fn values(zero: &Zero, circumstances: &Circumstances) -> Vec<(Knob, u64, Reason)> {
        let sized = size(zero, &Knobs::default(), circumstances);
        sized.into_iter().map(|key| (key.knob, key.elements.0, key.reason)).collect()
    }

    /// What HF Trainer fills in for a hidden size of 4096, asked from transformers 5.22.
    #[test]
    fn without_a_link_the_values_are_the_trainers() {
        assert_eq!(
            values(&stage_3(None), &circumstances("qwen3-8b", None)),
            [
                (Knob::ReduceBucketSize, 16_777_216, Reason::SquareMatrix),
                (Knob::PrefetchBucketSize, 15_099_494, Reason::NineTenths),
                (Knob::ParamPersistenceThreshold, 40_960, Reason::SmallParameters),
            ]
        );
    }

    /// 9 × 40 µs × 360 GB/s = 129.6 MB, which are 64.8 million elements of two bytes.
    #[test]
    fn a_fast_link_gets_larger_buckets() {
        let [(knob, elements, reason), ..] =
            values(&stage_3(None), &circumstances("qwen3-8b", Some(360e9)))[..]
        else {
            panic!("nothing was sized")
        };
        assert_eq!((knob, reason), (Knob::ReduceBucketSize, Reason::LinkPayload));
        assert!((64_800_000..=64_800_001).contains(&elements), "{elements}");
        // Over 10 GB/s 3.6 MB are enough, which is less than one matrix.
        let slow = values(&stage_3(None), &circumstances("qwen3-8b", Some(10e9)));
        assert_eq!(slow[0], (Knob::ReduceBucketSize, 16_777_216, Reason::SquareMatrix));
    }

    /// The embedding of Qwen3-8B has 151,936 × 4,096 = 622,329,856 elements; an eighth is 77,791,232.
    #[test]
    fn a_swap_buffer_holds_the_largest_partition() {
        let sized = values(&stage_3(Some("/nvme")), &circumstances("qwen3-8b", None));
        assert_eq!(sized[3], (Knob::ParamBufferSize, 77_791_232, Reason::LargestPartition));
    }

    #[test]
    fn no_bucket_is_larger_than_the_model() {
        let mut circumstances = circumstances("gpt2", None);
        circumstances.model.parameters = Elements(1000);
        assert_eq!(
            values(
                &Zero::Stage1Or2 { partitions_gradients: true, optimizer_in_pinned_memory: None },
                &circumstances
            ),
            [(Knob::ReduceBucketSize, 1000, Reason::WholeModel)]
        );
    }
}
