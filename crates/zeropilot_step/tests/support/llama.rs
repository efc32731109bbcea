//! A Llama's forward and backward, operation by operation, as written down in appendix A of the specification.
//!
//! It proves the gather simulation and the gradient hooks by themselves; the general tape replaces it.

use zeropilot_config::settings::Stage;
use zeropilot_step::zero::gather::{Event, EventKind, Gatherer, Hold, Modules};
use zeropilot_step::zero::reduction::Reducer;
use zeropilot_step::zero::{
    Backend, Category, Collective, Dtypes, Handle, Ledger, Place, Resident, RestStates, Run, Sink,
};

use super::Shape;

/// Highest points of the steady step's last micro step, which is what was measured.
#[derive(Debug, Clone, Default)]
pub(crate) struct Peaks {
    pub(crate) forward: u64,
    pub(crate) backward: u64,
    /// Bytes alive after the last backward of a step.
    pub(crate) after_backward: u64,
    /// Calls of every micro step, forward then backward.
    pub(crate) calls: Vec<[Vec<Collective>; 2]>,
}

/// Keeps the account, and the calls.
#[derive(Default)]
struct Recorder {
    ledger: Ledger,
    calls: Vec<Collective>,
}

impl Sink for Recorder {
    fn allocate(&mut self, category: Category, place: Place, bytes: u64) -> Handle {
        self.ledger.allocate(category, place, bytes)
    }

    fn free(&mut self, handle: Handle) {
        self.ledger.free(handle);
    }

    fn communicate(&mut self, call: Collective) {
        self.calls.push(call);
    }
}

/// Modules of one layer.
#[derive(Debug, Clone, Copy)]
struct Layer {
    whole: u32,
    input_norm: u32,
    attention: u32,
    q: u32,
    k: u32,
    v: u32,
    o: u32,
    post_norm: u32,
    mlp: u32,
    gate: u32,
    act: u32,
    up: u32,
    down: u32,
    first_parameter: usize,
}

struct Tree {
    modules: Modules,
    model: u32,
    decoder: u32,
    embedding: u32,
    rotary: u32,
    layers: Vec<Layer>,
    norm: u32,
    head: u32,
}

impl Tree {
    fn new(shape: Shape) -> Self {
        let mut modules = Modules::default();
        let model = modules.push([]);
        let decoder = modules.push([]);
        let embedding = modules.push([0]);
        let rotary = modules.push([]);
        let layers = (0..shape.layers as usize)
            .map(|layer| {
                let p = 1 + layer * 9;
                Layer {
                    whole: modules.push([]),
                    input_norm: modules.push([p + 7]),
                    attention: modules.push([]),
                    q: modules.push([p]),
                    k: modules.push([p + 1]),
                    v: modules.push([p + 2]),
                    o: modules.push([p + 3]),
                    post_norm: modules.push([p + 8]),
                    mlp: modules.push([]),
                    gate: modules.push([p + 4]),
                    act: modules.push([]),
                    up: modules.push([p + 5]),
                    down: modules.push([p + 6]),
                    first_parameter: p,
                }
            })
            .collect::<Vec<_>>();
        let norm_parameter = 1 + shape.layers as usize * 9;
        let norm = modules.push([norm_parameter]);
        let head = modules.push([if shape.tied { 0 } else { norm_parameter + 1 }]);
        Self { modules, model, decoder, embedding, rotary, layers, norm, head }
    }
}

/// What of a layer is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// All of it.
    Full,
    /// Neither it nor anything before it.
    Plain,
    /// Its attention's projections, and nothing before it.
    Attention,
}

/// What a norm keeps for its backward.
#[derive(Debug, Clone, Copy)]
struct NormKept {
    /// Its input in fp32 (in fp32 models the input itself).
    input: Handle,
    reciprocal: Handle,
    /// Kept for the gradient of its weight.
    normalized: Option<Handle>,
}

/// What a layer keeps for its backward.
struct LayerKept {
    input_norm: NormKept,
    attention_input: Handle,
    q: Handle,
    k: Handle,
    v: Handle,
    o: Handle,
    lse: Handle,
    post_norm: NormKept,
    mlp_input: Handle,
    gate: Handle,
    act: Handle,
    up: Handle,
    product: Handle,
}

/// Weights a recomputed layer saved, by place in the layer.
type SavedWeights = [Option<Hold>; 9];

struct Machine<'a> {
    tree: &'a Tree,
    sink: Recorder,
    gatherer: Option<Gatherer<'a>>,
    reducer: Reducer<'a>,
    sharded: bool,
    checkpointing: bool,
    /// Weights saved by the layer that is being recomputed or taken back.
    saved: SavedWeights,
    recomputing: bool,
    run: &'a Run<'a>,
    fp32: bool,
    shape: Shape,
    batch: u64,
    sequence: u64,
    /// Element bytes and the sizes of the appendix.
    e: u64,
    t4: u64,
    h: u64,
    h4: u64,
    q: u64,
    k: u64,
    i: u64,
}

/// Runs three steps and reports the last.
pub(crate) fn peaks(
    run: &Run<'_>,
    shape: Shape,
    batch: u64,
    sequence: u64,
    checkpointing: bool,
) -> Peaks {
    let tree = Tree::new(shape);
    let mut sink = Recorder::default();
    let states = RestStates::of(run);
    let sharded = run.zero.stage == Stage::Three;
    let mut rest = states.after_step.clone();
    for apart in
        [Category::PersistentParameters, Category::SecondaryPartitions, Category::HostAccumulation]
    {
        rest = rest.without(apart);
    }
    Resident::open(&rest, &mut sink);
    let gatherer = sharded.then(|| Gatherer::new(run, &tree.modules, Backend::Gloo, &mut sink));
    let e = Dtypes::of(run).model;
    let tokens = batch * sequence;
    let mut machine = Machine {
        tree: &tree,
        sink,
        gatherer,
        reducer: Reducer::new(run, Backend::Gloo),
        sharded,
        checkpointing,
        saved: [None; 9],
        recomputing: false,
        run,
        fp32: e == 4,
        shape,
        batch,
        sequence,
        e,
        t4: tokens * 4,
        h: tokens * shape.hidden * e,
        h4: tokens * shape.hidden * 4,
        q: tokens * shape.heads * shape.head * e,
        k: tokens * shape.kv_heads * shape.head * e,
        i: tokens * shape.intermediate * e,
    };
    let mut peaks = Peaks::default();
    for _ in 0..3 {
        peaks = machine.step();
    }
    peaks
}

impl Machine<'_> {
    fn step(&mut self) -> Peaks {
        let mut peaks = Peaks::default();
        let accumulation = self.run.accumulation_steps;
        for micro in 0..accumulation {
            self.sink.ledger.restart();
            if let Some(gatherer) = &mut self.gatherer {
                gatherer.begin_micro_step(&mut self.sink);
            }
            let kept = self.forward();
            peaks.forward = self.sink.ledger.peak().0;
            let forward = std::mem::take(&mut self.sink.calls);
            self.sink.ledger.restart();
            self.reducer.begin_backward(micro + 1 == accumulation);
            self.backward(kept);
            self.reducer.end_backward(&mut self.sink);
            if let Some(gatherer) = &mut self.gatherer {
                gatherer.end_backward(&mut self.sink);
            }
            peaks.backward = self.sink.ledger.peak().0;
            peaks.after_backward = self.sink.ledger.total().0;
            peaks.calls.push([forward, std::mem::take(&mut self.sink.calls)]);
        }
        self.reducer.end_step(&mut self.sink);
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.release_all(&mut self.sink);
            gatherer.gather_persistent(&mut self.sink);
        }
        peaks
    }

    fn add(&mut self, bytes: u64) -> Handle {
        self.sink.allocate(Category::Activations, Place::Device, bytes)
    }

    fn drop(&mut self, handle: Handle) {
        self.sink.free(handle);
    }

    fn event(&mut self, kind: EventKind, module: u32) {
        if let Some(gatherer) = &mut self.gatherer {
            gatherer.event(Event { kind, module }, &mut self.sink);
        }
    }

    fn enter(&mut self, module: u32) {
        self.event(EventKind::EnterForward, module);
    }

    fn leave(&mut self, module: u32) {
        self.event(EventKind::LeaveForward, module);
    }

    fn back(&mut self, module: u32) {
        self.event(EventKind::EnterBackward, module);
    }

    fn done(&mut self, module: u32) {
        self.event(EventKind::LeaveBackward, module);
    }

    fn gradient(&mut self, parameter: usize) -> Handle {
        let parameter = self.run.parameters[parameter];
        let bytes = if parameter.trainable { parameter.elements.0 * self.e } else { 0 };
        self.sink.allocate(Category::Gradients, Place::Device, bytes)
    }

    fn ready(&mut self, parameter: usize, gradient: Handle) {
        if self.run.parameters[parameter].trainable {
            self.reducer.ready(parameter, gradient, &mut self.sink);
        } else {
            self.drop(gradient);
        }
    }

    fn norm_parameter(&self) -> usize {
        1 + self.shape.layers as usize * 9
    }

    fn mode(&self, layer: Layer) -> Mode {
        let trained = |parameter: usize| self.run.parameters[parameter].trainable;
        match (trained(0), trained(layer.first_parameter)) {
            (true, _) => Mode::Full,
            (false, true) => Mode::Attention,
            (false, false) => Mode::Plain,
        }
    }

    /// A linear saves its input for the gradient of its weight; stage 3's saves it for a frozen one too.
    fn saves_input(&self, module: u32) -> bool {
        self.sharded || self.run.parameters[self.tree.modules.parameters(module)[0]].trainable
    }

    /// A norm of `input`; without `keep` what backward would need goes at once.
    fn norm(&mut self, module: u32, input: Handle, keep: bool) -> (NormKept, Handle) {
        let trained = self.run.parameters[self.tree.modules.parameters(module)[0]].trainable;
        self.enter(module);
        let x32 = (!self.fp32).then(|| self.add(self.h4));
        let square = self.add(self.h4);
        let mean = self.add(self.t4);
        self.drop(square);
        let variance = self.add(self.t4);
        let reciprocal = self.add(self.t4);
        self.drop(variance);
        let product = self.add(self.h4);
        if !keep {
            self.drop(reciprocal);
            x32.into_iter().for_each(|x32| self.drop(x32));
        }
        let normalized = if self.fp32 { product } else { self.add(self.h) };
        let out = self.add(self.h);
        if !keep || !trained {
            self.drop(normalized);
        }
        if !self.fp32 {
            self.drop(product);
        }
        self.drop(mean);
        self.save_weight(module);
        self.leave(module);
        (
            NormKept {
                input: x32.unwrap_or(input),
                reciprocal,
                normalized: trained.then_some(normalized),
            },
            out,
        )
    }

    fn rope(&mut self, bytes: u64) -> Handle {
        let a = self.add(bytes);
        let negative = self.add(bytes / 2);
        let joined = self.add(bytes);
        self.drop(negative);
        let b = self.add(bytes);
        self.drop(joined);
        let rotated = self.add(bytes);
        self.drop(b);
        self.drop(a);
        rotated
    }

    fn linear(&mut self, module: u32, bytes: u64) -> Handle {
        self.enter(module);
        let out = self.add(bytes);
        self.save_weight(module);
        self.leave(module);
        out
    }

    /// During recomputation weights are saved as tensors of their own.
    fn save_weight(&mut self, module: u32) {
        if let (true, Some(gatherer)) = (self.recomputing, &mut self.gatherer)
            && let [parameter] = *self.tree.modules.parameters(module)
        {
            self.saved[(parameter - 1) % 9] = gatherer.hold(parameter);
        }
    }

    /// The backward of a module has used its weight.
    fn used_weight(&mut self, place: usize) {
        if let (Some(hold), Some(gatherer)) = (self.saved[place].take(), &mut self.gatherer) {
            gatherer.let_go(hold, &mut self.sink);
        }
    }

    /// Attention up to its output: rotated queries and keys, values, what it attended to, its sums, and the output.
    fn attention(&mut self, layer: Layer, input: Handle, keep: bool) -> ([Handle; 5], Handle) {
        self.enter(layer.attention);
        let q = self.linear(layer.q, self.q);
        let k = self.linear(layer.k, self.k);
        let v = self.linear(layer.v, self.k);
        let rotated_q = self.rope(self.q);
        let rotated_k = self.rope(self.k);
        self.drop(q);
        self.drop(k);
        let o = self.add(self.q);
        let lse = self.add(self.t4 * self.shape.heads);
        if !keep {
            self.drop(lse);
        }
        let attended = self.linear(layer.o, self.h);
        if !keep {
            [o, rotated_q, rotated_k, v, input].into_iter().for_each(|h| self.drop(h));
        }
        self.leave(layer.attention);
        ([rotated_q, rotated_k, v, o, lse], attended)
    }

    /// A layer's forward up to the product; what it keeps, and the residual stream in its middle.
    fn layer_head(&mut self, layer: Layer, input: Handle, keep: bool) -> (LayerKept, Handle) {
        self.enter(layer.whole);
        let norm_kept = keep && self.mode(layer) == Mode::Full;
        let (input_norm, attention_input) = self.norm(layer.input_norm, input, norm_kept);
        let ([q, k, v, o, lse], attended) = self.attention(layer, attention_input, keep);
        let middle = self.add(self.h);
        self.drop(attended);
        let (post_norm, mlp_input) = self.norm(layer.post_norm, middle, keep);
        self.enter(layer.mlp);
        let gate = self.linear(layer.gate, self.i);
        let act = self.linear(layer.act, self.i);
        if !keep {
            self.drop(gate);
        }
        let up = self.linear(layer.up, self.i);
        let product = self.add(self.i);
        if !keep {
            self.drop(act);
            self.drop(up);
        }
        let kept = LayerKept {
            input_norm,
            attention_input,
            q,
            k,
            v,
            o,
            lse,
            post_norm,
            mlp_input,
            gate,
            act,
            up,
            product,
        };
        (kept, middle)
    }

    fn layer(&mut self, index: usize, input: Handle) -> (Option<LayerKept>, Handle) {
        let layer = self.tree.layers[index];
        let keep = !self.checkpointing && self.mode(layer) != Mode::Plain;
        let (kept, middle) = self.layer_head(layer, input, keep);
        let down = self.linear(layer.down, self.h);
        if !keep || !self.saves_input(layer.down) {
            self.drop(kept.product);
            self.drop(kept.mlp_input);
        }
        self.leave(layer.mlp);
        let output = self.add(self.h);
        self.drop(down);
        if !keep || !self.fp32 {
            self.drop(middle);
        }
        if !self.checkpointing && !self.fp32 && index > 0 {
            self.drop(input);
        }
        self.leave(layer.whole);
        (keep.then_some(kept), output)
    }

    fn forward(&mut self) -> Kept {
        let tree = self.tree;
        self.enter(tree.model);
        self.enter(tree.decoder);
        let embedded = self.linear(tree.embedding, self.h);
        self.enter(tree.rotary);
        let rotary = [0; 2].map(|_| self.add(self.sequence * self.shape.head * self.e));
        self.leave(tree.rotary);
        let mut streams = vec![embedded];
        let mut layers = Vec::new();
        for index in 0..tree.layers.len() {
            let (kept, output) = self.layer(index, streams[index]);
            layers.push(kept);
            streams.push(output);
        }
        let last = streams[tree.layers.len()];
        let (norm, head_input) = self.norm(tree.norm, last, true);
        if !self.fp32 {
            self.drop(last);
            if !self.checkpointing && !tree.layers.is_empty() {
                self.drop(embedded);
            }
        }
        self.leave(tree.decoder);
        let (v, tokens) = (self.shape.vocabulary, self.batch * self.sequence);
        let logits = self.linear(tree.head, tokens * v * self.e);
        let wide = (!self.fp32).then(|| self.add(tokens * v * 4));
        let padded = self.add(8 * self.batch * (self.sequence + 1));
        let labels = (self.batch > 1).then(|| self.add(8 * tokens));
        let log_softmax = self.add(tokens * v * 4);
        wide.into_iter().for_each(|wide| self.drop(wide));
        let labels = match labels {
            Some(labels) => {
                self.drop(padded);
                labels
            }
            None => padded,
        };
        self.leave(tree.model);
        self.drop(logits);
        if !self.saves_input(tree.head) {
            self.drop(head_input);
        }
        Kept { streams, rotary, layers, norm, head_input, labels, log_softmax }
    }

    fn backward(&mut self, mut kept: Kept) {
        let tree = self.tree;
        let head_parameter = if self.shape.tied { 0 } else { self.norm_parameter() + 1 };
        self.back(tree.model);
        let gradient = self.loss_backward(&kept);
        self.back(tree.head);
        let head = self.gradient(head_parameter);
        let dx = self.add(self.h);
        self.drop(gradient);
        if self.saves_input(tree.head) {
            self.drop(kept.head_input);
        }
        let mut gradient = dx;
        if !self.shape.tied {
            self.ready(head_parameter, head);
        }
        self.done(tree.head);
        self.back(tree.decoder);
        self.back(tree.norm);
        gradient = self.norm_backward(kept.norm, self.norm_parameter(), gradient);
        self.done(tree.norm);
        for index in (0..tree.layers.len()).rev() {
            if self.mode(tree.layers[index]) == Mode::Attention {
                self.last_layer_backward(
                    index,
                    kept.layers.pop().flatten().unwrap(),
                    gradient,
                    kept.rotary,
                );
                return;
            }
            let layer = kept.layers.pop().unwrap();
            let input = kept.streams[index];
            gradient = self.layer_backward(index, layer, input, gradient, kept.rotary);
        }
        self.back(tree.embedding);
        let mut embedding = self.gradient(0);
        self.drop(gradient);
        if self.shape.tied {
            let sum = self.gradient(0);
            self.drop(head);
            self.drop(embedding);
            embedding = sum;
        }
        self.ready(0, embedding);
    }

    fn loss_backward(&mut self, kept: &Kept) -> Handle {
        let elements = self.batch * self.sequence * self.shape.vocabulary;
        let nll = self.add(elements * 4);
        self.drop(kept.labels);
        let wide = self.add(elements * 4);
        self.drop(nll);
        self.drop(kept.log_softmax);
        if self.fp32 {
            return wide;
        }
        let logits = self.add(elements * self.e);
        self.drop(wide);
        logits
    }

    fn norm_backward(&mut self, kept: NormKept, parameter: usize, incoming: Handle) -> Handle {
        let (h, h4, t4) = (self.h, self.h4, self.t4);
        let scaled = self.add(h);
        let weight = if let Some(normalized) = kept.normalized {
            let weighted = self.add(h);
            let weight = self.gradient(parameter);
            self.drop(weighted);
            self.drop(incoming);
            self.drop(normalized);
            weight
        } else {
            self.drop(incoming);
            self.gradient(parameter)
        };
        self.used_weight((parameter - 1) % 9);
        self.ready(parameter, weight);
        let wide = if self.fp32 {
            scaled
        } else {
            let wide = self.add(h4);
            self.drop(scaled);
            wide
        };
        let m1 = self.add(h4);
        let m2 = self.add(h4);
        let sum = self.add(t4);
        self.drop(m2);
        self.drop(wide);
        self.drop(kept.reciprocal);
        let dv = self.add(h4);
        self.drop(sum);
        let pw = self.add(h4);
        let m3 = self.add(h4);
        let m4 = self.add(h4);
        [m3, pw, dv, kept.input].into_iter().for_each(|handle| self.drop(handle));
        let added = self.add(h4);
        self.drop(m4);
        self.drop(m1);
        if self.fp32 {
            return added;
        }
        let cast = self.add(h);
        self.drop(added);
        cast
    }

    fn rope_backward(&mut self, bytes: u64, incoming: Handle) -> Handle {
        let r1 = self.add(bytes);
        let negative = self.add(bytes / 2);
        let s1 = self.add(bytes);
        self.drop(negative);
        let s2 = self.add(bytes);
        self.drop(r1);
        let sa = self.add(bytes);
        self.drop(s1);
        self.drop(s2);
        let r2 = self.add(bytes);
        self.drop(incoming);
        let result = self.add(bytes);
        self.drop(sa);
        self.drop(r2);
        result
    }

    /// The sum of gradients that meet at one tensor; with stage 3 the gradient hook and the release come before it.
    fn meet(
        &mut self,
        parts: [Handle; 2],
        parameter: usize,
        gradient: Handle,
        module: u32,
    ) -> Handle {
        if self.sharded {
            self.ready(parameter, gradient);
            self.done(module);
        }
        let sum = self.add(self.h);
        parts.into_iter().for_each(|part| self.drop(part));
        if !self.sharded {
            self.ready(parameter, gradient);
        }
        sum
    }

    fn layer_backward(
        &mut self,
        index: usize,
        kept: Option<LayerKept>,
        input: Handle,
        g: Handle,
        rotary: [Handle; 2],
    ) -> Handle {
        let layer = self.tree.layers[index];
        let p = layer.first_parameter;
        [layer.whole, layer.mlp, layer.down].into_iter().for_each(|module| self.back(module));
        let kept = match kept {
            Some(kept) => kept,
            None => self.recompute(layer, input),
        };
        let dx = self.mlp_backward(layer, &kept);
        self.back(layer.post_norm);
        let gx = self.norm_backward(kept.post_norm, p + 8, dx);
        self.done(layer.post_norm);
        let g1 = self.add(self.h);
        self.drop(g);
        self.drop(gx);
        let dx = self.attention_backward(index, layer, &kept, rotary);
        self.back(layer.input_norm);
        let gx = self.norm_backward(kept.input_norm, p + 7, dx);
        self.done(layer.input_norm);
        if self.checkpointing && !self.fp32 {
            self.drop(input);
        }
        let g2 = self.add(self.h);
        self.drop(g1);
        self.drop(gx);
        g2
    }

    fn recompute(&mut self, layer: Layer, input: Handle) -> LayerKept {
        self.recomputing = true;
        let (kept, middle) = self.layer_head(layer, input, true);
        self.enter(layer.down);
        self.save_weight(layer.down);
        self.recomputing = false;
        if self.sharded {
            // Stage 3's linear saves its input after it has made its output.
            let down = self.add(self.h);
            self.drop(down);
        }
        if !self.fp32 {
            self.drop(middle);
        }
        kept
    }

    fn mlp_backward(&mut self, layer: Layer, kept: &LayerKept) -> Handle {
        let p = layer.first_parameter;
        let weight = self.gradient(p + 6);
        let product = self.add(self.i);
        if self.saves_input(layer.down) {
            self.drop(kept.product);
        }
        self.used_weight(6);
        self.ready(p + 6, weight);
        self.done(layer.down);
        let up = self.add(self.i);
        let act = self.add(self.i);
        [product, kept.up, kept.act].into_iter().for_each(|handle| self.drop(handle));
        self.back(layer.up);
        let weight = self.gradient(p + 5);
        let from_up = self.add(self.h);
        self.drop(up);
        self.used_weight(5);
        self.ready(p + 5, weight);
        self.done(layer.up);
        self.back(layer.act);
        let gate = self.add(self.i);
        self.drop(act);
        self.drop(kept.gate);
        self.done(layer.act);
        self.back(layer.gate);
        let weight = self.gradient(p + 4);
        let from_gate = self.add(self.h);
        self.drop(gate);
        if self.saves_input(layer.gate) {
            self.drop(kept.mlp_input);
        }
        self.used_weight(4);
        self.meet([from_up, from_gate], p + 4, weight, layer.gate)
    }

    /// Back to the rotated queries, keys and values: their gradients.
    fn attention_core_backward(
        &mut self,
        layer: Layer,
        kept: &LayerKept,
        residual: Option<Handle>,
    ) -> [Handle; 3] {
        let p = layer.first_parameter;
        self.back(layer.attention);
        self.back(layer.o);
        let weight = self.gradient(p + 3);
        let attended = self.add(self.q);
        residual.into_iter().for_each(|gradient| self.drop(gradient));
        self.used_weight(3);
        self.ready(p + 3, weight);
        self.done(layer.o);
        let q = self.add(self.q);
        let k = self.add(self.k);
        let v = self.add(self.k);
        [attended, kept.k, kept.q, kept.v, kept.lse, kept.o]
            .into_iter()
            .for_each(|handle| self.drop(handle));
        let k = self.rope_backward(self.k, k);
        let q = self.rope_backward(self.q, q);
        [q, k, v]
    }

    fn attention_backward(
        &mut self,
        index: usize,
        layer: Layer,
        kept: &LayerKept,
        rotary: [Handle; 2],
    ) -> Handle {
        let p = layer.first_parameter;
        let [q, k, v] = self.attention_core_backward(layer, kept, None);
        if index == 0 {
            rotary.into_iter().for_each(|handle| self.drop(handle));
        }
        self.back(layer.v);
        let weight = self.gradient(p + 2);
        let from_v = self.add(self.h);
        self.drop(v);
        self.used_weight(2);
        self.ready(p + 2, weight);
        self.done(layer.v);
        self.back(layer.k);
        let weight = self.gradient(p + 1);
        let from_k = self.add(self.h);
        self.drop(k);
        self.used_weight(1);
        let from_kv = self.meet([from_v, from_k], p + 1, weight, layer.k);
        self.back(layer.q);
        let clone = self.add(self.q);
        self.drop(q);
        let weight = self.gradient(p);
        let from_q = self.add(self.h);
        self.drop(clone);
        self.drop(kept.attention_input);
        self.used_weight(0);
        self.meet([from_kv, from_q], p, weight, layer.q)
    }

    /// A layer whose input needs no gradient and whose projections are trained: backward ends with them, and they
    /// have no end of backward of their own.
    fn last_layer_backward(
        &mut self,
        index: usize,
        kept: LayerKept,
        g: Handle,
        rotary: [Handle; 2],
    ) {
        let layer = self.tree.layers[index];
        let p = layer.first_parameter;
        [layer.whole, layer.mlp, layer.down].into_iter().for_each(|module| self.back(module));
        let dx = self.mlp_backward(layer, &kept);
        self.back(layer.post_norm);
        let gx = self.norm_backward(kept.post_norm, p + 8, dx);
        self.done(layer.post_norm);
        let residual = self.add(self.h);
        self.drop(g);
        self.drop(gx);
        let [q, k, v] = self.attention_core_backward(layer, &kept, Some(residual));
        rotary.into_iter().for_each(|handle| self.drop(handle));
        for (module, place, gradient) in [(layer.v, 2, v), (layer.k, 1, k)] {
            self.back(module);
            let weight = self.gradient(p + place);
            self.drop(gradient);
            self.ready(p + place, weight);
        }
        self.back(layer.q);
        let clone = self.add(self.q);
        self.drop(q);
        let weight = self.gradient(p);
        self.drop(clone);
        self.drop(kept.attention_input);
        self.ready(p, weight);
    }
}

struct Kept {
    streams: Vec<Handle>,
    rotary: [Handle; 2],
    layers: Vec<Option<LayerKept>>,
    norm: NormKept,
    head_input: Handle,
    labels: Handle,
    log_softmax: Handle,
}
