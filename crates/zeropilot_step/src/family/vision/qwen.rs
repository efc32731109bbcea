//! The towers of Qwen-VL: images of any size, packed into one sequence of patches.

use super::{Mlp, MlpNames, Seen, differentiates_input, run_blocks};
use crate::family::Setup;
use crate::family::build::{Builder, item};
use crate::family::feed_forward::GatedMlp;
use crate::family::layer::{Convolution, Embedding, Linear, Norm, NormKind};
use crate::model::{Label, Module};
use crate::primitive::{Heads, Rotary};
use crate::shape::{Segments, Vision, VisionKind};
use crate::tape::{Category, Tape, Tensor};

#[derive(Debug)]
pub(crate) struct Tower {
    module: Module,
    patch_embed: Module,
    projection: Convolution,
    positions: Option<Embedding>,
    rotary: Module,
    blocks: Vec<Block>,
    merger: Merger,
    deepstack: Vec<Merger>,
    kind: VisionKind,
}

#[derive(Debug)]
struct Block {
    module: Module,
    norms: (Norm, Norm),
    attention: Attention,
    feed_forward: FeedForward,
}

#[derive(Debug)]
enum FeedForward {
    Gated(GatedMlp),
    Plain(Mlp),
}

#[derive(Debug)]
struct Attention {
    module: Module,
    qkv: Linear,
    out: Linear,
    heads: Heads,
    segments: Segments,
}

/// Patches that become one token: a norm and two layers.
#[derive(Debug)]
struct Merger {
    module: Module,
    /// The two layers are a module of their own.
    sequence: Option<Module>,
    norm: Norm,
    up: Linear,
    act: Module,
    down: Linear,
    normalises_tokens: bool,
}

impl Tower {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup, vision: &Vision) -> Self {
        let (module, mut at) = parent.inside(Label::Name("visual"));
        let kind = vision.kind;
        let (patch_embed, mut inner) = at.inside(Label::Name("patch_embed"));
        let has_bias = kind == VisionKind::Qwen3;
        let projection = inner.convolution("proj", vision.patch_values(), vision.hidden, has_bias);
        let positions = (kind == VisionKind::Qwen3)
            .then(|| at.embedding("pos_embed", vision.positions, vision.hidden));
        let rotary = at.plain("rotary_pos_emb");
        let blocks = (0..vision.layers).map(|index| Block::build(&mut at, vision, index)).collect();
        let out = setup.shape.hidden;
        let merger = Merger::build(&mut at, Label::Name("merger"), vision, out, false);
        let deepstack = (0..vision.deepstack.len() as u64)
            .map(|index| {
                let label = item("deepstack_merger_list", index);
                Merger::build(&mut at, label, vision, out, true)
            })
            .collect();
        Self { module, patch_embed, projection, positions, rotary, blocks, merger, deepstack, kind }
    }

    pub(super) fn see<'t>(&self, setup: &Setup, vision: &Vision, tape: &'t Tape) -> Seen<'t> {
        let element = setup.training.element_bytes;
        let pixels = tape.outside(vision.pixels(), 4).cast(element);
        tape.enter_silently(self.module);
        let pixels = tape.wrap_argument(self.module, &pixels);
        let (states, merged, features) = self.run(setup, vision, &pixels);
        tape.leave_silently(self.module);
        let wrap = |tensor: &Tensor<'t>| tape.wrap_output(self.module, tensor);
        let (states, merged) = (wrap(&states), wrap(&merged));
        let features: Vec<Tensor<'t>> = features.iter().map(wrap).collect();
        drop(pixels);
        // The features of every image apart, and joined again.
        let apart = |tensor: &Tensor<'t>| {
            let [whole] = tensor.split([tensor.elements()]);
            whole
        };
        let (merged_apart, apart_features) = (apart(&merged), features.iter().map(apart));
        let apart_features: Vec<Tensor<'t>> = apart_features.collect();
        let joined = merged_apart.joined();
        let mut held = vec![states, merged, merged_apart];
        held.extend(features);
        Seen { features: joined, deepstack: apart_features, _held: held }
    }

    fn run<'t>(
        &self,
        setup: &Setup,
        vision: &Vision,
        pixels: &Tensor<'t>,
    ) -> (Tensor<'t>, Tensor<'t>, Vec<Tensor<'t>>) {
        let tape = pixels.tape();
        let patches = vision.patches();
        let tokens = vision.tokens();
        let taps = (self.kind == VisionKind::Qwen3).then(|| {
            let places = tape.index_tensor(patches * 4);
            (places, tape.fresh(patches * 4, 4, Category::Index))
        });
        let _positions = tape.index_tensor(patches * 2);
        let _ends = tape.fresh(vision.frame_segments().count + 1, 4, Category::Index);
        let windows = (self.kind == VisionKind::Qwen25).then(|| {
            let order = tape.index_tensor(tokens);
            (order, tape.fresh(vision.window_segments().count + 1, 4, Category::Index))
        });
        let mut x = tape.call(self.patch_embed, pixels, |pixels| {
            let seen = self.projection.call(&pixels.view(), patches).view();
            if differentiates_input(setup, vision) { tape.require_grad(seen) } else { seen }
        });
        // Held until the tower returns.
        let mut learned = None;
        if let (Some(table), Some((places, weights))) = (&self.positions, &taps) {
            let wide = {
                let rows = table.call(places);
                let product = rows.mul(weights);
                product.sum(4)
            };
            let narrow = wide.cast(setup.training.element_bytes);
            x = x.add(&narrow);
            learned = Some(wide);
        }
        if let Some((order, _)) = &windows {
            x = {
                let before = x.view();
                before.pick(order, patches * vision.hidden).view()
            };
        }
        let mut rotary = self.rotate(tape, vision);
        if windows.is_some() {
            let table = || tape.fresh(rotary.cos.elements(), 4, Category::Activation);
            let (cos, sin) = (table(), table());
            rotary = Rotary { cos, sin };
        }
        if self.kind != VisionKind::Qwen25 {
            x = x.view();
        }
        let mut features = Vec::new();
        let after = |index: usize, x: &Tensor<'t>| {
            if let Some(place) = vision.deepstack.iter().position(|&block| block == index as u64) {
                features.push(self.deepstack[place].call(x));
            }
        };
        let others = |_| vec![rotary.cos.clone(), rotary.sin.clone()];
        let call = |index: usize, arguments: &[Tensor<'t>]| self.call_block(index, arguments);
        x = run_blocks(setup, self.blocks.len(), x, others, call, after);
        let back = windows.is_some().then(|| tape.index_tensor(tokens));
        let mut merged = self.merger.call(&x);
        if let Some(back) = &back {
            merged = merged.pick(back, tokens * setup.shape.hidden);
        }
        drop(learned);
        (x, merged, features)
    }

    /// Cosines and sines of rows and columns, in 32 bits.
    fn rotate<'t>(&self, tape: &'t Tape, vision: &Vision) -> Rotary<'t> {
        tape.enter_silently(self.rotary);
        let half = vision.patches() * (vision.hidden / vision.heads.max(1)) / 2;
        let table = |elements: u64| tape.fresh(elements, 4, Category::Activation);
        let _frequencies = {
            let _positions = table(vision.patches() * 2);
            table(half)
        };
        let mut cos = table(half);
        cos = {
            let _old = cos;
            table(half)
        };
        let mut sin = table(half);
        sin = {
            let _old = sin;
            table(half)
        };
        let mut both = table(half);
        cos = {
            let _old = cos;
            table(2 * half)
        };
        both = {
            let _old = both;
            table(half)
        };
        sin = {
            let _old = sin;
            table(2 * half)
        };
        drop(both);
        tape.leave_silently(self.rotary);
        Rotary { cos, sin }
    }

    pub(super) fn call_block<'t>(&self, index: usize, arguments: &[Tensor<'t>]) -> Tensor<'t> {
        let rotary = Rotary { cos: arguments[1].clone(), sin: arguments[2].clone() };
        self.blocks[index].call(&arguments[0], &rotary)
    }
}

impl Block {
    fn build(parent: &mut Builder<'_>, vision: &Vision, index: u64) -> Self {
        let (module, mut at) = parent.inside(item("blocks", index));
        let kind = if vision.kind == VisionKind::Qwen25 { NormKind::Rms } else { NormKind::Layer };
        let norms = (at.norm("norm1", vision.hidden, kind), at.norm("norm2", vision.hidden, kind));
        let is_windowed =
            vision.kind == VisionKind::Qwen25 && !vision.full_attention.contains(&index);
        let segments = if is_windowed { vision.window_segments() } else { vision.frame_segments() };
        let attention = Attention::build(&mut at, vision, segments);
        let (hidden, inner) = (vision.hidden, vision.intermediate);
        let names = |up, down, act| MlpNames { up, down, act, act_first: false };
        let feed_forward = match vision.kind {
            VisionKind::Qwen25 => {
                FeedForward::Gated(GatedMlp::build(&mut at, "mlp", hidden, inner, true))
            }
            VisionKind::Qwen2 => {
                let mlp = Mlp::build(&mut at, &names("fc1", "fc2", "act"), hidden, inner);
                FeedForward::Plain(Mlp { is_quick: true, ..mlp })
            }
            _ => {
                let names = names("linear_fc1", "linear_fc2", "act_fn");
                FeedForward::Plain(Mlp::build(&mut at, &names, hidden, inner))
            }
        };
        Self { module, norms, attention, feed_forward }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |mut x| {
            x = {
                let attended = {
                    let normed = self.norms.0.call(&x);
                    self.attention.call(&normed, rotary)
                };
                x.add(&attended)
            };
            let branch = {
                let normed = self.norms.1.call(&x);
                match &self.feed_forward {
                    FeedForward::Gated(mlp) => mlp.call(&normed),
                    FeedForward::Plain(mlp) => mlp.call(&normed),
                }
            };
            x.add(&branch)
        })
    }
}

impl Attention {
    fn build(parent: &mut Builder<'_>, vision: &Vision, segments: Segments) -> Self {
        let hidden = vision.hidden;
        let (module, mut at) = parent.inside(Label::Name("attn"));
        let width = hidden / vision.heads.max(1);
        Self {
            module,
            qkv: at.linear("qkv", hidden, 3 * hidden, true),
            out: at.linear("proj", hidden, hidden, true),
            heads: Heads {
                batch: 1,
                queries: segments.length,
                keys: segments.length,
                heads: vision.heads,
                kv_heads: vision.heads,
                width,
                value_width: width,
            },
            segments,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>, rotary: &Rotary<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let element = x.element_bytes();
            let [mut q, mut k, v] = {
                let qkv = self.qkv.call(&x).view_with_copied_gradient().view();
                qkv.split([qkv.elements() / 3; 3])
            };
            (q, k) = {
                let (wide_q, wide_k) = (q.cast(4), k.cast(4));
                let (turned_q, turned_k) = (wide_q.rope(rotary), wide_k.rope(rotary));
                (turned_q.cast(element), turned_k.cast(element))
            };
            (q, k) = (q.view(), k.view());
            let v = v.view();
            let _lengths = tape.fresh(self.segments.count, 4, Category::Index);
            let (out, _pieces) = q.packed_attention(&k, &v, self.heads, self.segments);
            self.out.call(&out.view())
        })
    }
}

impl Merger {
    fn build(
        parent: &mut Builder<'_>,
        label: Label,
        vision: &Vision,
        out: u64,
        normalises_tokens: bool,
    ) -> Self {
        let (module, mut at) = parent.inside(label);
        let hidden = vision.hidden;
        let token = hidden * vision.merge * vision.merge;
        if vision.kind == VisionKind::Qwen3 {
            let width = if normalises_tokens { token } else { hidden };
            return Self {
                module,
                sequence: None,
                norm: at.norm("norm", width, NormKind::Layer),
                up: at.linear("linear_fc1", token, token, true),
                act: at.plain("act_fn"),
                down: at.linear("linear_fc2", token, out, true),
                normalises_tokens,
            };
        }
        let kind = if vision.kind == VisionKind::Qwen25 { NormKind::Rms } else { NormKind::Layer };
        let norm = at.norm("ln_q", hidden, kind);
        let (sequence, mut at) = at.inside(Label::Name("mlp"));
        Self {
            module,
            sequence: Some(sequence),
            norm,
            up: at.linear("0", token, token, true),
            act: at.plain("1"),
            down: at.linear("2", token, out, true),
            normalises_tokens,
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let x = if self.normalises_tokens {
                let tokens = x.view();
                self.norm.call(&tokens)
            } else {
                self.norm.call(&x).view()
            };
            match self.sequence {
                Some(module) => tape.call(module, &x, |x| self.layers(x)),
                None => self.layers(x),
            }
        })
    }

    fn layers<'t>(&self, x: Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        let mut x = x;
        x = self.up.call(&x);
        x = tape.call(self.act, &x, |x| x.activate());
        self.down.call(&x)
    }
}
