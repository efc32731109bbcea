//! The decoders descended from Llama.

use super::attention::{Attention, Surroundings};
use super::build::{Builder, item};
use super::causal::{Body, Hidden};
use super::feed_forward::{FeedForward, Tiles};
use super::layer::{Embedding, Norm, NormKind};
use super::{Family, Setup};
use crate::model::Module;
use crate::primitive::Rotary;
use crate::shape::{Tower, Vision, VisionKind};
use crate::tape::{Category, Tape, Tensor};

/// A decoder with rotary positions.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    layers: Vec<Layer>,
    norm: Norm,
    rotary: Module,
}

#[derive(Debug)]
struct Layer {
    module: Module,
    attention: Attention,
    feed_forward: FeedForward,
    input_norm: Norm,
    post_norm: Norm,
    /// Gemma's norms around the feed-forward part.
    feed_forward_norms: Option<(Norm, Norm)>,
    /// Phi-3's dropout modules.
    dropouts: Option<(Module, Module)>,
}

impl Setup {
    /// The part of a head that is rotated.
    pub(super) fn rotated_width(&self) -> u64 {
        match self.family {
            Family::GptNeoX => self.shape.head_width / 4,
            Family::DeepseekV3 => self.shape.rope_width,
            _ => self.shape.head_width,
        }
    }

    /// Whether a window shorter than the sequence, or images that see all of themselves, make a mask necessary.
    pub(super) fn is_masked(&self) -> bool {
        let window = self.switches.sliding_window;
        window.is_some_and(|window| window < self.batch.length) || self.sees_both_ways()
    }

    /// Whether the tokens of an image see each other whatever their order (Gemma 3).
    pub(super) fn sees_both_ways(&self) -> bool {
        let vision = self.vision().filter(|vision| vision.kind == VisionKind::Gemma3);
        vision.is_some_and(|vision| !vision.images.is_empty())
    }

    /// The vision tower.
    pub(super) fn vision(&self) -> Option<&Vision> {
        match &self.tower {
            Tower::Vision(vision) => Some(vision),
            _ => None,
        }
    }

    pub(super) fn is_gemma(&self) -> bool {
        matches!(self.family, Family::Gemma2 | Family::Gemma3)
    }
}

impl Body for Decoder {
    const CONTAINER: &'static str = "model";

    fn build(at: &mut Builder<'_>, setup: &Setup) -> Self {
        let shape = setup.shape;
        Self {
            embedding: {
                let ranks = setup.embedding_ranks();
                let rows = shape.vocabulary / ranks;
                Embedding { ranks, ..at.embedding("embed_tokens", rows, shape.hidden) }
            },
            layers: (0..shape.layers).map(|index| Layer::build(at, setup, index)).collect(),
            norm: at.norm("norm", shape.hidden, norm_kind(setup)),
            rotary: at.plain("rotary_emb"),
        }
    }

    fn embedding(&self) -> &Embedding {
        &self.embedding
    }

    fn run<'t>(&self, setup: &Setup, tape: &'t Tape) -> Hidden<'t> {
        let embedded = self.embed(setup, tape);
        let positions = if setup.shares_sequence() {
            // The batch has them.
            tape.outside(setup.batch.tokens(), 8)
        } else {
            tape.index_tensor(setup.batch.length)
        };
        let masks = masks(setup, tape);
        let rotary = self.rotate(setup, tape);
        let others = |index: usize| {
            let mut others = vec![rotary.cos.clone(), rotary.sin.clone(), positions.clone()];
            if setup.family != Family::Qwen2Moe && !masks.is_empty() {
                others.push(masks[index % masks.len()].clone());
            }
            others
        };
        let x = self.run_layers(setup, embedded.clone(), others);
        self.finish(&x).into()
    }

    fn layers(&self) -> usize {
        self.layers.len()
    }

    fn call_layer<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        self.layers[index].call(arguments)
    }

    fn call_part<'t>(&self, key: u32, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        match key.checked_sub(Tiles::FIRST_KEY) {
            Some(layer) => self.layers[layer as usize].feed_forward.tile(&arguments[0]),
            None => self.call_layer(key as usize, arguments),
        }
    }

    fn shape_logits<'t>(&self, setup: &Setup, logits: Tensor<'t>) -> Tensor<'t> {
        if setup.family != Family::Gemma2 {
            return logits;
        }
        let mut logits = logits;
        logits = logits.scale();
        logits = logits.squash();
        logits.scale()
    }
}

impl Decoder {
    /// The embedded tokens of the batch.
    pub(super) fn embed<'t>(&self, setup: &Setup, tape: &'t Tape) -> Tensor<'t> {
        let ids = tape.outside(setup.batch.tokens(), 8);
        self.embedding.call_on_input(&ids, setup.switches, setup.is_gemma())
    }

    /// The module of the rotary tables.
    pub(super) fn rotary(&self) -> Module {
        self.rotary
    }

    /// The final norm.
    pub(super) fn finish<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        self.norm.call(x)
    }

    pub(super) fn rotate<'t>(&self, setup: &Setup, tape: &'t Tape) -> Rotary<'t> {
        tape.enter_silently(self.rotary);
        // Positions that come with the batch differ from sequence to sequence.
        let Setup { batch, .. } = setup;
        let positions = if setup.shares_sequence() { batch.tokens() } else { batch.length };
        let tables = tape.rotary(positions, setup.rotated_width(), setup.training.element_bytes);
        tape.leave_silently(self.rotary);
        tables
    }
}

/// Gemma 2 makes a float mask for each of its two layer types, which alternate; a window makes one
/// of bytes.
fn masks<'t>(setup: &Setup, tape: &'t Tape) -> Vec<Tensor<'t>> {
    let batch = setup.batch;
    let places = batch.sequences * batch.length * batch.length;
    let bytes = setup.training.element_bytes;
    match setup.family {
        Family::Gemma2 => {
            vec![
                tape.fresh(places, bytes, Category::Activation),
                tape.fresh(places, bytes, Category::Activation),
            ]
        }
        _ if setup.is_masked() => {
            vec![tape.fresh(batch.length * batch.length, 1, Category::Index)]
        }
        // Made for sliding layers even when there are none.
        Family::Qwen2Moe => vec![tape.fresh(batch.length * batch.length, 1, Category::Index)],
        _ => Vec::new(),
    }
}

fn norm_kind(setup: &Setup) -> NormKind {
    if setup.is_gemma() { NormKind::Gemma } else { NormKind::Rms }
}

impl Layer {
    fn build(parent: &mut Builder<'_>, setup: &Setup, index: u64) -> Self {
        let hidden = setup.shape.hidden;
        let kind = norm_kind(setup);
        let (module, mut at) = parent.inside(item("layers", index));
        let attention = Attention::build(&mut at, setup);
        let feed_forward = FeedForward::build(&mut at, setup, index);
        let input_norm = at.norm("input_layernorm", hidden, kind);
        let post_norm = at.norm("post_attention_layernorm", hidden, kind);
        let feed_forward_norms = setup.is_gemma().then(|| {
            (
                at.norm("pre_feedforward_layernorm", hidden, kind),
                at.norm("post_feedforward_layernorm", hidden, kind),
            )
        });
        let dropouts = (setup.family == Family::Phi3)
            .then(|| (at.plain("resid_attn_dropout"), at.plain("resid_mlp_dropout")));
        Self {
            module,
            attention,
            feed_forward,
            input_norm,
            post_norm,
            feed_forward_norms,
            dropouts,
        }
    }

    /// Arguments: hidden states, cosines, sines, positions, perhaps a mask.
    fn call<'t>(&self, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        let around = Surroundings {
            rotary: Rotary { cos: arguments[1].clone(), sin: arguments[2].clone() },
            mask: arguments.get(4).cloned(),
        };
        let tape = arguments[0].tape();
        tape.call(self.module, &arguments[0], |x| {
            let mut h = self.input_norm.call(&x);
            let _weights;
            (h, _weights) = self.attention.call(&h, &around);
            if self.feed_forward_norms.is_some() {
                h = self.post_norm.call(&h);
            }
            h = add_branch(&x, &h, self.dropouts.map(|(attention, _)| attention));
            let residual = h.clone();
            h = match &self.feed_forward_norms {
                Some((before, _)) => before.call(&h),
                None => self.post_norm.call(&h),
            };
            h = self.feed_forward.call(&h);
            if let Some((_, after)) = &self.feed_forward_norms {
                h = after.call(&h);
            }
            add_branch(&residual, &h, self.dropouts.map(|(_, mlp)| mlp))
        })
    }
}

/// `residual + branch`, through a dropout module if there is one (its probability is zero).
fn add_branch<'t>(
    residual: &Tensor<'t>,
    branch: &Tensor<'t>,
    dropout: Option<Module>,
) -> Tensor<'t> {
    match dropout {
        Some(module) => {
            let kept = residual.tape().call(module, branch, |branch| branch);
            residual.add(&kept)
        }
        None => residual.add(branch),
    }
}
