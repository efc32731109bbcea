//! Feed-forward parts: gated, fused, and mixtures of experts.

use super::build::Builder;
use super::layer::{FoldingWrapper, Linear, Split};
use super::{Family, Setup};
use crate::model::{Label, Module, Parameter};
use crate::primitive::{ExpertFolds, ExpertWeights, Routing};
use crate::shape::MlpTiles;
use crate::tape::{Category, LayerKernels, Tensor};

/// The feed-forward part of a decoder layer.
#[derive(Debug)]
pub(super) enum FeedForward {
    Gated(Box<GatedMlp>),
    Fused(Box<FusedMlp>),
    Experts(Box<MixtureOfExperts>),
}

impl FeedForward {
    pub(super) fn build(parent: &mut Builder<'_>, setup: &Setup, layer: u64) -> Self {
        let shape = setup.shape;
        match setup.family {
            Family::Phi3 => {
                let mlp = FusedMlp::build(parent, shape.hidden, shape.intermediate);
                Self::Fused(Box::new(mlp))
            }
            Family::Mixtral | Family::Qwen2Moe | Family::Qwen3Moe => {
                Self::Experts(Box::new(MixtureOfExperts::build(parent, setup)))
            }
            Family::DeepseekV3 if layer >= shape.dense_layers => {
                Self::Experts(Box::new(MixtureOfExperts::build(parent, setup)))
            }
            _ => {
                let (hidden, inner) = (shape.hidden, shape.intermediate);
                let mlp = GatedMlp::build(parent, "mlp", hidden, inner, false);
                let mlp = mlp.shared(setup.tensor.ranks);
                Self::Gated(Box::new(mlp.in_tiles(parent, setup, Tiles::of(setup, layer))))
            }
        }
    }

    /// The computation of some rows, where rows are computed apart.
    pub(super) fn tile<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        match self {
            Self::Gated(mlp) => mlp.compute(x),
            _ => self.call(x),
        }
    }

    pub(super) fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        match self {
            Self::Gated(mlp) => mlp.call(x),
            Self::Fused(mlp) => mlp.call(x),
            Self::Experts(block) => block.call(x),
        }
    }
}

/// `down(act(gate(x)) * up(x))`.
#[derive(Debug)]
pub(super) struct GatedMlp {
    module: Module,
    gate: Linear,
    up: Linear,
    down: Linear,
    act: Module,
    tiles: Option<Tiles>,
}

impl GatedMlp {
    pub(super) fn build(
        parent: &mut Builder<'_>,
        name: &'static str,
        hidden: u64,
        intermediate: u64,
        has_bias: bool,
    ) -> Self {
        let (module, mut at) = parent.inside(Label::Name(name));
        Self {
            module,
            gate: at.linear("gate_proj", hidden, intermediate, has_bias),
            up: at.linear("up_proj", hidden, intermediate, has_bias),
            down: at.linear("down_proj", intermediate, hidden, has_bias),
            act: at.plain("act_fn"),
            tiles: None,
        }
    }

    /// The same, shared by ranks.
    fn shared(self, ranks: u64) -> Self {
        Self {
            gate: self.gate.shared(Split::outputs(ranks)),
            up: self.up.shared(Split::outputs(ranks)),
            down: self.down.shared(Split::inputs(ranks)),
            ..self
        }
    }

    /// The same in tiles. The replaced forward names the weights before its tiles use them: stage 3 gathers them with the
    /// module itself, unless it does not know that the model runs.
    fn in_tiles(self, parent: &mut Builder<'_>, setup: &Setup, tiles: Option<Tiles>) -> Self {
        if tiles.is_some() && !setup.head.bypasses_model() {
            for linear in [&self.gate, &self.up, &self.down] {
                parent.borrow(self.module, linear.weight);
            }
        }
        Self { tiles, ..self }
    }

    pub(super) fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        x.tape().call(self.module, x, |x| match &self.tiles {
            Some(tiles) => tiles.run(&x, |tile| self.compute(tile)),
            None => self.compute(&x),
        })
    }

    /// What the module computes of some rows.
    pub(super) fn compute<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        let product = match tape.options().layer_kernels {
            LayerKernels::Liger => {
                let gate = self.gate.call(x);
                gate.liger_gate(&self.up.call(x))
            }
            LayerKernels::Model => {
                let active = {
                    let gate = self.gate.call(x);
                    tape.call(self.act, &gate, |gate| gate.activate())
                };
                let up = self.up.call(x);
                active.mul(&up)
            }
        };
        self.down.call(&product)
    }
}

/// Rows of a feed-forward part that are computed at a time (DeepSpeed's `TiledMLP`).
#[derive(Debug)]
pub(super) struct Tiles {
    key: u32,
    /// Whether all ranks agree on the number of tiles before each call.
    asks: bool,
    /// Elements of the tiles of forward, which cuts every sequence, and of backward, which cuts all rows.
    forward: Vec<u64>,
    backward: Vec<u64>,
}

impl Tiles {
    /// Keys of parts from here on are those of tiled feed-forward parts, by layer.
    pub(super) const FIRST_KEY: u32 = 1 << 24;

    fn of(setup: &Setup, layer: u64) -> Option<Self> {
        let Setup { batch, shape, long_context, .. } = setup;
        let (count, asks) = match long_context.mlp_tiles {
            MlpTiles::Whole => return None,
            MlpTiles::Auto => (batch.length.div_ceil(shape.hidden.max(1)), true),
            MlpTiles::Count(count) => (count.max(1), false),
        };
        let rows = |length: u64| {
            let each = length.div_ceil(count).max(1);
            (0..length.div_ceil(each)).map(move |tile| each.min(length - tile * each))
        };
        let forward = rows(batch.length).map(|it| it * batch.sequences * shape.hidden);
        // Layers are few.
        #[allow(clippy::cast_possible_truncation)]
        let key = Self::FIRST_KEY + layer as u32;
        Some(Self {
            key,
            asks,
            forward: forward.collect(),
            backward: rows(batch.tokens()).map(|it| it * shape.hidden).collect(),
        })
    }

    fn run<'t>(&self, x: &Tensor<'t>, compute: impl Fn(&Tensor<'t>) -> Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        if self.asks {
            tape.agree();
        }
        tape.tiled(self.key, x, &self.forward, self.backward.clone(), compute)
    }
}

/// Phi-3's gated part with one projection for both halves.
#[derive(Debug)]
pub(super) struct FusedMlp {
    module: Module,
    gate_up: Linear,
    down: Linear,
    act: Module,
}

impl FusedMlp {
    fn build(parent: &mut Builder<'_>, hidden: u64, intermediate: u64) -> Self {
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        Self {
            module,
            gate_up: at.linear("gate_up_proj", hidden, 2 * intermediate, false),
            down: at.linear("down_proj", intermediate, hidden, false),
            act: at.plain("activation_fn"),
        }
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| {
            let both = self.gate_up.call(&x);
            let [gate, up] = both.chunk2();
            drop(both);
            let product = {
                let active = tape.call(self.act, &gate, |gate| gate.activate());
                up.mul(&active)
            };
            drop(up);
            self.down.call(&product)
        })
    }
}

/// A router, experts, and perhaps an expert all tokens share.
#[derive(Debug)]
pub(super) struct MixtureOfExperts {
    module: Module,
    family: Family,
    router: (Module, Parameter),
    router_wrappers: Vec<FoldingWrapper>,
    experts: (Module, ExpertWeights),
    expert_wrappers: Vec<FoldingWrapper>,
    shared: Option<GatedMlp>,
    shared_gate: Option<Linear>,
    per_token: u64,
    normalises: bool,
    groups: u64,
    groups_per_token: u64,
}

impl MixtureOfExperts {
    fn build(parent: &mut Builder<'_>, setup: &Setup) -> Self {
        let (family, shape) = (setup.family, setup.shape);
        let (module, mut at) = parent.inside(Label::Name("mlp"));
        let hidden = shape.hidden;
        let build_router = |at: &mut Builder<'_>| {
            at.folded("gate", |at| at.parameter("weight", shape.experts * hidden))
        };
        let (experts, router);
        if matches!(family, Family::DeepseekV3 | Family::Qwen3Moe) {
            experts = Self::build_experts(&mut at, setup);
            router = build_router(&mut at);
        } else {
            router = build_router(&mut at);
            experts = Self::build_experts(&mut at, setup);
        }
        let (router_wrappers, router, weight) = router;
        let (expert_wrappers, experts, weights) = experts;
        let shared = match family {
            Family::Qwen2Moe => Some("shared_expert"),
            Family::DeepseekV3 => Some("shared_experts"),
            _ => None,
        }
        .map(|name| GatedMlp::build(&mut at, name, hidden, shape.shared_intermediate, false));
        let shared_gate =
            (family == Family::Qwen2Moe).then(|| at.linear("shared_expert_gate", hidden, 1, false));
        let normalises_by_default = matches!(family, Family::Mixtral | Family::DeepseekV3);
        Self {
            module,
            family,
            router: (router, weight),
            router_wrappers,
            experts: (experts, weights),
            expert_wrappers,
            shared,
            shared_gate,
            per_token: shape.experts_per_token,
            normalises: setup.switches.normalise_top_k.unwrap_or(normalises_by_default),
            groups: shape.expert_groups.max(1),
            groups_per_token: shape.groups_per_token.max(1),
        }
    }

    fn build_experts(
        at: &mut Builder<'_>,
        setup: &Setup,
    ) -> (Vec<FoldingWrapper>, Module, ExpertWeights) {
        let shape = setup.shape;
        let (hidden, intermediate) = (shape.hidden, shape.expert_intermediate);
        at.folded("experts", |inner| {
            let gate_up =
                inner.parameter("gate_up_proj", shape.experts * 2 * intermediate * hidden);
            let down = inner.parameter("down_proj", shape.experts * hidden * intermediate);
            let act = inner.plain("act_fn");
            ExpertWeights { gate_up, down, act, experts: shape.experts, hidden, intermediate }
        })
    }

    fn call<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let tape = x.tape();
        tape.call(self.module, x, |x| match self.family {
            Family::Qwen2Moe => self.with_gated_shared_expert(&x),
            Family::DeepseekV3 => {
                let routing = self.route(&x);
                let routed = self.run_experts(&x, &routing);
                match &self.shared {
                    Some(shared) => {
                        let shared = shared.call(&x);
                        routed.add(&shared)
                    }
                    None => routed,
                }
            }
            _ => {
                let routing = self.route(&x);
                self.run_experts(&x, &routing)
            }
        })
    }

    fn with_gated_shared_expert<'t>(&self, x: &Tensor<'t>) -> Tensor<'t> {
        let shared = self.shared.as_ref().map(|shared| shared.call(x));
        let routing = self.route(x);
        let mut out = self.run_experts(x, &routing);
        if let (Some(mut shared), Some(gate)) = (shared, &self.shared_gate) {
            shared = {
                let open = {
                    let gate = gate.call(x);
                    gate.squash()
                };
                open.mul(&shared)
            };
            out = out.add(&shared);
        }
        out
    }

    fn run_experts<'t>(&self, x: &Tensor<'t>, routing: &Routing<'t>) -> Tensor<'t> {
        let (module, weights) = self.experts;
        let tape = x.tape();
        let (mut x, mut chosen) = (x.clone(), routing.weights.clone());
        let mut folds = ExpertFolds::default();
        for wrapper in &self.expert_wrappers {
            x = tape.enter(wrapper.module, &x);
            chosen = tape.wrap_argument(wrapper.module, &chosen);
            let (weight, fold) = match wrapper.parameter.as_str() {
                "gate_up_proj" => (weights.gate_up, &mut folds.gate_up),
                _ => (weights.down, &mut folds.down),
            };
            *fold = tape.fold_of_experts(weight, wrapper.down, wrapper.up, weights.experts);
        }
        x = tape.enter(module, &x);
        let seen = Routing {
            logits: routing.logits.clone(),
            weights: tape.wrap_argument(module, &chosen),
            indices: routing.indices.clone(),
            per_token: routing.per_token,
        };
        let (mut out, folded) = x.experts(&seen, weights, &folds);
        out = tape.leave(module, out);
        for wrapper in self.expert_wrappers.iter().rev() {
            out = tape.leave(wrapper.module, out);
        }
        // The library keeps what it folded until the outermost wrapper returns.
        drop(folded);
        out
    }

    fn route<'t>(&self, x: &Tensor<'t>) -> Routing<'t> {
        let (module, own) = self.router;
        let tape = x.tape();
        let mut x = x.clone();
        let mut folded = None;
        for wrapper in &self.router_wrappers {
            x = tape.enter(wrapper.module, &x);
            folded = tape.fold_of_matrix(own, wrapper.down, wrapper.up);
        }
        x = tape.enter(module, &x);
        let weight = folded.as_ref().map(|[weight, _]| weight);
        let routing = match self.family {
            Family::DeepseekV3 => self.route_in_groups(&x, weight),
            _ => self.route_by_softmax(&x, weight),
        };
        tape.leave_silently(module);
        let mut seen = Routing {
            logits: tape.wrap_output(module, &routing.logits),
            weights: tape.wrap_output(module, &routing.weights),
            ..routing
        };
        for wrapper in self.router_wrappers.iter().rev() {
            tape.leave_silently(wrapper.module);
            seen.logits = tape.wrap_output(wrapper.module, &seen.logits);
            seen.weights = tape.wrap_output(wrapper.module, &seen.weights);
        }
        seen
    }

    fn route_by_softmax<'t>(&self, x: &Tensor<'t>, folded: Option<&Tensor<'t>>) -> Routing<'t> {
        let weights = self.experts.1;
        let kind = crate::primitive::LinearKind::Linear;
        let logits = match folded {
            Some(weight) => {
                let tokens = x.elements() / weights.hidden;
                x.linear_with(weight, tokens * weights.experts)
            }
            None => x.linear(self.router.1, None, kind, weights.hidden),
        };
        let probabilities = logits.softmax_in_fp32();
        let (mut chosen, indices) = probabilities.top_k(weights.experts, self.per_token);
        drop(probabilities);
        if self.normalises {
            let total = chosen.sum(self.per_token);
            chosen = chosen.divide_in_place(&total);
        }
        // Mixtral keeps its routing weights in 32 bits.
        if self.family != Family::Mixtral {
            chosen = chosen.cast(x.element_bytes());
        }
        Routing { logits, weights: chosen, indices, per_token: self.per_token }
    }

    /// DeepSeek: choose groups of experts first, without a gradient, then experts within them.
    fn route_in_groups<'t>(&self, x: &Tensor<'t>, folded: Option<&Tensor<'t>>) -> Routing<'t> {
        let tape = x.tape();
        let experts = self.experts.1.experts;
        let tokens = x.elements() / self.experts.1.hidden;
        let logits = {
            let wide = x.cast(4);
            let weight = match folded {
                Some(weight) => weight.cast(4),
                None => tape.parameter_as(self.router.1, 4),
            };
            wide.linear_with(&weight, tokens * experts)
        };
        let scores = logits.squash();
        let indices = self.choose_in_groups(&scores, tokens);
        let mut weights = scores.gather_elements(&indices);
        drop(scores);
        if self.normalises {
            let total = {
                let sum = weights.sum(self.per_token);
                sum.add_scalar()
            };
            weights = weights.divide_in_place(&total);
        }
        weights = weights.scale();
        Routing { logits, weights, indices, per_token: self.per_token }
    }

    fn choose_in_groups<'t>(&self, scores: &Tensor<'t>, tokens: u64) -> Tensor<'t> {
        let tape = scores.tape();
        let experts = self.experts.1.experts;
        let mut choice = scores.add_scalar();
        let group_scores = {
            let (best, _) = choice.top_k(experts / self.groups, 2);
            best.sum(2)
        };
        let (_, group_indices) = group_scores.top_k(self.groups, self.groups_per_token);
        let _group_mask = tape.fresh(tokens * self.groups, 4, Category::Index);
        drop(group_indices);
        let mask = tape.fresh(tokens * experts, 1, Category::Index);
        choice = choice.add(&mask);
        choice.top_k(experts, self.per_token).1
    }
}
