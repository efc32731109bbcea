//! Building a model: modules and parameters in order of registration, adapters put in on the way.

use super::layer::{
    Adapter, Convolution, Embedding, FoldingWrapper, Linear, Norm, NormKind, Split, Wrapper,
};
use crate::model::{Label, Model, Module, ModuleId, Parameter, pattern};
use crate::primitive::{LinearKind, QuantizedProduct};
use crate::shape::{Fold, Lora, LoraTargets, Quantized, Training};

/// A place in the module tree under construction.
pub(crate) struct Builder<'a> {
    model: &'a mut Model,
    training: &'a Training,
    at: Option<ModuleId>,
}

impl<'a> Builder<'a> {
    /// A builder below the last of `tops`.
    pub(crate) fn under(model: &'a mut Model, training: &'a Training, tops: &[Module]) -> Self {
        Self { model, training, at: tops.last().map(|top| top.id) }
    }

    fn module_under(&mut self, label: Label) -> Module {
        self.model.add_module(self.at, label, &self.training.leaves)
    }

    /// A module without parameters of its own.
    pub(crate) fn plain(&mut self, name: &'static str) -> Module {
        self.module_under(Label::Name(name))
    }

    /// A module and the builder for what is inside it.
    pub(crate) fn inside(&mut self, label: Label) -> (Module, Builder<'_>) {
        let module = self.module_under(label);
        (module, self.at(module.id))
    }

    fn at(&mut self, id: ModuleId) -> Builder<'_> {
        Builder { model: self.model, training: self.training, at: Some(id) }
    }

    /// A parameter of the current module.
    pub(crate) fn parameter(&mut self, name: &'static str, elements: u64) -> Parameter {
        let module = self.at.unwrap_or_else(|| self.module_under(Label::Top).id);
        self.parameter_of(module, name, elements)
    }

    fn parameter_of(&mut self, module: ModuleId, name: &'static str, elements: u64) -> Parameter {
        let is_trainable = self.is_trainable(module, name);
        let bytes = self.training.element_bytes;
        self.model.add_parameter(module, name, elements, bytes, is_trainable)
    }

    fn is_trainable(&self, module: ModuleId, name: &str) -> bool {
        if self.training.lora.is_some() {
            return false;
        }
        let frozen = &self.training.frozen;
        if frozen.is_empty() {
            return true;
        }
        let full = self.model.name_in(module, name);
        !frozen.contains(&full) && !frozen.contains(&pattern(&full))
    }

    /// A linear layer.
    pub(crate) fn linear(
        &mut self,
        name: &'static str,
        width_in: u64,
        width_out: u64,
        has_bias: bool,
    ) -> Linear {
        self.linear_of(name, width_in, width_out, has_bias, LinearKind::Linear)
    }

    /// A linear layer of another kind.
    pub(crate) fn linear_of(
        &mut self,
        name: &'static str,
        width_in: u64,
        width_out: u64,
        has_bias: bool,
        kind: LinearKind,
    ) -> Linear {
        let module = self.plain(name);
        let sizes = (width_in * width_out, has_bias.then_some(width_out));
        let lora = self.training.lora.as_ref();
        let kind = self.quantized(module, name).map_or(kind, LinearKind::Quantized);
        if lora.is_some_and(|lora| lora.trains(name)) {
            let (copy, weight, bias) = self.trained_copy(module, sizes);
            let wrapper = Wrapper::TrainedCopy(copy);
            let split = Split::Whole;
            return Linear { module, weight, bias, width_in, kind, wrapper, split };
        }
        if let Some(lora) = lora.filter(|lora| self.is_wrapped(lora, module, name)) {
            let mut inner = self.at(module.id);
            let base = inner.plain("base_layer");
            let (weight, bias) = inner.weights(base.id, sizes);
            inner.note_quantized(kind, weight);
            let adapter = inner.adapter(base, lora, width_in, width_out);
            return Linear {
                module,
                weight,
                bias,
                width_in,
                kind,
                wrapper: Wrapper::Adapter(adapter),
                split: Split::Whole,
            };
        }
        let (weight, bias) = self.weights(module.id, sizes);
        self.note_quantized(kind, weight);
        let (wrapper, split) = (Wrapper::None, Split::Whole);
        Linear { module, weight, bias, width_in, kind, wrapper, split }
    }

    /// How a linear layer multiplies, if its weight is stored in a smaller format.
    fn quantized(&self, module: Module, name: &str) -> Option<QuantizedProduct> {
        let Quantized { base, product } = self.training.quantized.as_ref()?;
        let by_list = base.skipped.is_some().then(|| self.model.module_name(module.id));
        let is_kept = by_list
            .and_then(|path| base.skips(&path))
            // The output, and T5's second matrix, which transformers keeps out of quantization.
            .unwrap_or_else(|| is_output(name) || name == "wo");
        (!is_kept).then_some(*product)
    }

    /// Whether adapters wrap a linear layer.
    fn is_wrapped(&self, lora: &Lora, module: Module, name: &str) -> bool {
        match &lora.targets {
            LoraTargets::AllLinear => !is_output(name),
            LoraTargets::Named(_) => self.is_named(lora, module),
        }
    }

    fn is_named(&self, lora: &Lora, module: Module) -> bool {
        let LoraTargets::Named(targets) = &lora.targets else { return false };
        let path = pattern(&self.model.module_name(module.id));
        targets.iter().any(|target| is_end_of(&path, target))
    }

    fn note_quantized(&mut self, kind: LinearKind, weight: Parameter) {
        if matches!(kind, LinearKind::Quantized(_)) {
            self.model.quantized.push(weight.id);
        }
    }

    /// An output projection that shares the weight of an embedding.
    pub(crate) fn tied_linear(&mut self, name: &'static str, to: &Embedding) -> Linear {
        let module = self.plain(name);
        self.model.borrowed.push((module.id, to.weight.id));
        Linear {
            module,
            weight: to.weight,
            bias: None,
            width_in: to.width,
            kind: LinearKind::Linear,
            wrapper: Wrapper::None,
            split: Split::Whole,
        }
    }

    fn weights(
        &mut self,
        module: ModuleId,
        (weight, bias): (u64, Option<u64>),
    ) -> (Parameter, Option<Parameter>) {
        let weight = self.parameter_of(module, "weight", weight);
        let bias = bias.map(|elements| self.parameter_of(module, "bias", elements));
        (weight, bias)
    }

    /// The frozen original and its trained copy, which is the one that is called.
    fn trained_copy(
        &mut self,
        module: Module,
        sizes: (u64, Option<u64>),
    ) -> (Module, Parameter, Option<Parameter>) {
        let mut inner = self.at(module.id);
        let original = inner.plain("original_module");
        inner.weights(original.id, sizes);
        let copy = inner.plain("modules_to_save.default");
        let bytes = inner.training.element_bytes;
        let weight = inner.model.add_parameter(copy.id, "weight", sizes.0, bytes, true);
        let bias =
            sizes.1.map(|size| inner.model.add_parameter(copy.id, "bias", size, bytes, true));
        (copy, weight, bias)
    }

    fn adapter(&mut self, base: Module, lora: &Lora, width_in: u64, width_out: u64) -> Adapter {
        let dropout = self.plain("lora_dropout.default");
        let down = self.adapter_part("lora_A.default", width_in * lora.rank, lora);
        let up = self.adapter_part("lora_B.default", lora.rank * width_out, lora);
        Adapter { base, dropout, down, up, rank: lora.rank, has_dropout: lora.has_dropout }
    }

    fn adapter_part(
        &mut self,
        name: &'static str,
        elements: u64,
        lora: &Lora,
    ) -> (Module, Parameter) {
        let module = self.plain(name);
        let bytes = lora.element_bytes;
        let weight = self.model.add_parameter(module.id, "weight", elements, bytes, true);
        (module, weight)
    }

    /// An embedding table.
    pub(crate) fn embedding(&mut self, name: &'static str, rows: u64, width: u64) -> Embedding {
        let module = self.plain(name);
        let elements = rows * width;
        let lora = self.training.lora.as_ref();
        if lora.is_some_and(|lora| lora.trains(name)) {
            let (copy, weight, _) = self.trained_copy(module, (elements, None));
            let wrapper = Wrapper::TrainedCopy(copy);
            return Embedding { module, weight, width, wrapper, ranks: 1 };
        }
        if let Some(lora) = lora.filter(|lora| self.is_named(lora, module)) {
            let mut inner = self.at(module.id);
            let base = inner.plain("base_layer");
            let weight = inner.parameter_of(base.id, "weight", elements);
            let adapter = inner.embedding_adapter(base, lora, rows, width);
            let wrapper = Wrapper::Adapter(adapter);
            return Embedding { module, weight, width, wrapper, ranks: 1 };
        }
        let weight = self.parameter_of(module.id, "weight", elements);
        Embedding { module, weight, width, wrapper: Wrapper::None, ranks: 1 }
    }

    /// The adapter tensors of an embedding live in dictionaries that are never called; ZeRO-3
    /// gathers them with the embedding that borrows them.
    fn embedding_adapter(&mut self, base: Module, lora: &Lora, rows: u64, width: u64) -> Adapter {
        let dropout = self.plain("lora_dropout.default");
        let bytes = lora.element_bytes;
        let a = self.plain("lora_embedding_A");
        let down = self.model.add_parameter(a.id, "default", rows * lora.rank, bytes, true);
        let b = self.plain("lora_embedding_B");
        let up = self.model.add_parameter(b.id, "default", lora.rank * width, bytes, true);
        if let Some(owner) = self.at {
            self.model.borrowed.push((owner, down.id));
            self.model.borrowed.push((owner, up.id));
        }
        let (down, up) = ((a, down), (b, up));
        Adapter { base, dropout, down, up, rank: lora.rank, has_dropout: false }
    }

    /// Note that `module` uses a parameter another module owns.
    pub(crate) fn borrow(&mut self, module: Module, parameter: Parameter) {
        self.model.borrowed.push((module.id, parameter.id));
    }

    /// An embedding table that is never trained.
    pub(crate) fn frozen_embedding(
        &mut self,
        name: &'static str,
        rows: u64,
        width: u64,
    ) -> Embedding {
        let module = self.plain(name);
        let bytes = self.training.element_bytes;
        let weight = self.model.add_parameter(module.id, "weight", rows * width, bytes, false);
        Embedding { module, weight, width, wrapper: Wrapper::None, ranks: 1 }
    }

    /// A convolution: the weight of one output channel has `values` elements.
    pub(crate) fn convolution(
        &mut self,
        name: &'static str,
        values: u64,
        channels: u64,
        has_bias: bool,
    ) -> Convolution {
        let module = self.plain(name);
        let sizes = (values * channels, has_bias.then_some(channels));
        let (weight, bias) = self.weights(module.id, sizes);
        Convolution { module, weight, bias, channels }
    }

    /// A module that uses its tensors in its own way, with the wrappers whose adapters are folded into them, the
    /// outermost first.
    pub(crate) fn folded<T>(
        &mut self,
        name: &'static str,
        build: impl FnOnce(&mut Builder<'_>) -> T,
    ) -> (Vec<FoldingWrapper>, Module, T) {
        let module = self.plain(name);
        let path = pattern(&self.model.module_name(module.id));
        let lora = self.training.lora.as_ref();
        let folds: Vec<&Fold> = lora.map_or_else(Vec::new, |lora| {
            lora.folds.iter().filter(|fold| is_end_of(&path, &fold.module)).collect()
        });
        self.at(module.id).wrapped(module, &folds, build)
    }

    fn wrapped<T>(
        mut self,
        module: Module,
        folds: &[&Fold],
        build: impl FnOnce(&mut Builder<'_>) -> T,
    ) -> (Vec<FoldingWrapper>, Module, T) {
        let (Some((fold, inner)), Some(lora)) = (folds.split_first(), self.training.lora.as_ref())
        else {
            return (Vec::new(), module, build(&mut self));
        };
        let base = self.plain("base_layer");
        let (mut wrappers, base, built) = self.at(base.id).wrapped(base, inner, build);
        // The factors are never called: the wrapper reads them.
        let [down, up] = [("lora_A.default", fold.elements.0), ("lora_B.default", fold.elements.1)]
            .map(|(name, elements)| self.adapter_part(name, elements, lora).1);
        self.borrow(module, down);
        self.borrow(module, up);
        wrappers.insert(0, FoldingWrapper { module, parameter: fold.parameter.clone(), down, up });
        (wrappers, base, built)
    }

    /// A norm over rows of `width`; a layer norm also has a bias.
    pub(crate) fn norm(&mut self, name: &'static str, width: u64, kind: NormKind) -> Norm {
        let module = self.plain(name);
        let bias = (kind == NormKind::Layer).then_some(width);
        let (weight, bias) = self.weights(module.id, (width, bias));
        Norm { module, weight, bias, width, kind, ranks: 1 }
    }
}

/// The modules above the model's own: the top, and with adapters the two the library puts around.
pub(crate) fn add_tops(model: &mut Model, training: &Training) -> Vec<Module> {
    let mut labels = vec![Label::Top];
    if training.lora.is_some() {
        labels.extend([Label::Name("base_model"), Label::Name("model")]);
    }
    let mut tops: Vec<Module> = Vec::with_capacity(labels.len());
    for label in labels {
        tops.push(model.add_module(tops.last().map(|top| top.id), label, &training.leaves));
    }
    tops
}

/// The label of item `index` of a module list.
pub(crate) fn item(list: &'static str, index: u64) -> Label {
    // Layer counts are small.
    #[allow(clippy::cast_possible_truncation)]
    Label::Item(list, index as u32)
}

/// Whether a path is `end`, or ends with it after a dot.
fn is_end_of(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Whether a linear layer gives the logits: it is neither wrapped nor quantized unless it is named.
fn is_output(name: &str) -> bool {
    matches!(name, "lm_head" | "proj_out")
}

impl Lora {
    fn trains(&self, name: &str) -> bool {
        self.trained_modules.iter().any(|module| module == name)
    }
}
