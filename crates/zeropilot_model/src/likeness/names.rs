//! What the names and shapes of stored tensors tell about a model.

use std::sync::Arc;

use crate::architecture::{Module, ModuleKind, TieGroup};
use crate::safetensors::{StoredModel, StoredTensor};

/// What tensor names tell; nothing of it if there are none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TensorNames {
    /// Whether feed-forward blocks have a gate.
    pub(crate) has_gate: Option<bool>,
    /// Whether norms have a bias.
    pub(crate) has_norm_bias: bool,
    /// Whether queries and keys have a norm.
    pub(crate) has_head_norms: bool,
    /// Whether attention has sinks, for which its scores are kept.
    pub(crate) has_sinks: bool,
    /// Whether query projections have a bias.
    pub(crate) has_attention_bias: Option<bool>,
    /// Whether there is an output matrix of its own.
    pub(crate) has_output: Option<bool>,
    /// Inner width of a feed-forward block.
    pub(crate) inner: Option<u64>,
}

const GATES: [&str; 8] = [
    "gate_proj",
    "gate_up_proj",
    "w1",
    "wi_0",
    "linear_fc1_gate",
    "gate_up",
    "fc1_g",
    "gate_and_up",
];
const HEAD_NORMS: [&str; 8] = [
    "q_norm",
    "query_layernorm",
    "q_layernorm",
    "query_norm",
    "q_ln",
    "qk_norm",
    "query_layer_norm",
    "norm_q",
];
const QUERIES: [&str; 7] =
    ["q_proj", "qkv_proj", "query_key_value", "c_attn", "Wqkv", "query", "qkv"];
const DOWN: [&str; 6] = ["down_proj", "dense_4h_to_h", "fc2", "c_proj", "w2", "fc_out"];
const OUTPUTS: [&str; 3] = ["lm_head", "embed_out", "output_layer"];
const EMBEDDINGS: [&str; 8] = [
    "embed_tokens",
    "wte",
    "wpe",
    "word_embeddings",
    "embed_in",
    "tok_embeddings",
    "embedding",
    "embeddings",
];

impl TensorNames {
    pub(crate) fn of(stored: &StoredModel) -> Self {
        let any = |found: &dyn Fn(&[&str]) -> bool| {
            stored.tensors.iter().any(|tensor| {
                let parts: Vec<&str> = tensor.name.split('.').collect();
                found(&parts)
            })
        };
        let has = |names: &[&str]| any(&|parts| parts.iter().any(|part| names.contains(part)));
        let has_bias = |is_module: &dyn Fn(&str) -> bool| {
            any(&|parts| matches!(parts, [.., module, "bias"] if is_module(module)))
        };
        if stored.tensors.is_empty() {
            return Self::default();
        }
        Self {
            has_gate: Some(has(&GATES)),
            has_norm_bias: has_bias(&|module| module.contains("norm") || module.starts_with("ln_")),
            has_head_norms: has(&HEAD_NORMS),
            has_sinks: has(&["sinks"]),
            has_attention_bias: has(&QUERIES)
                .then(|| has_bias(&|module| QUERIES.contains(&module))),
            has_output: Some(!has_no_output(stored)),
            inner: stored.tensors.iter().find_map(inner_width),
        }
    }
}

/// The inputs of the last matrix of a feed-forward block.
fn inner_width(tensor: &StoredTensor) -> Option<u64> {
    let mut parts = tensor.name.rsplit('.');
    let is_weight = parts.next() == Some("weight");
    let is_down = parts.next().is_some_and(|module| DOWN.contains(&module));
    let in_attention = tensor.name.contains("attn") || tensor.name.contains("attention");
    let [first, second] = tensor.shape.as_slice() else { return None };
    // The inner width is the larger one, whichever way the matrix lies.
    (is_weight && is_down && !in_attention && !tensor.name.contains("expert"))
        .then(|| *first.max(second))
}

/// Whether there is no output matrix beside the embedding.
pub(super) fn has_no_output(stored: &StoredModel) -> bool {
    !stored.tensors.iter().any(|tensor| tensor.name.split('.').any(|part| OUTPUTS.contains(&part)))
}

/// The tensors as modules, with the kinds their names and shapes tell, and the module of the output.
pub(super) fn tree(stored: &StoredModel, is_tied: bool) -> (Module, Option<String>) {
    let is_output = |tensor: &&StoredTensor| {
        let module = tensor.name.strip_suffix(".weight");
        module.and_then(|name| name.rsplit('.').next()).is_some_and(|it| OUTPUTS.contains(&it))
    };
    let output = stored.tensors.iter().find(is_output);
    let is_embedding = |tensor: &&StoredTensor| {
        tensor.shape.len() == 2 && tensor.name.split('.').any(|part| EMBEDDINGS.contains(&part))
    };
    let mut embeddings = stored.tensors.iter().filter(is_embedding);
    // A tied output that is stored all the same is a second copy.
    let embedding = output.filter(|_| is_tied).and_then(|output| {
        embeddings.find(|embedding| embedding.shape == output.shape).map(|it| it.name.as_str())
    });
    let mut root = stored.root();
    mark(&mut root, "", &|name| {
        let is_tied = embedding == Some(name) || output.is_some_and(|output| output.name == name);
        (embedding.is_some() && is_tied).then_some(TieGroup(0))
    });
    let output = output.and_then(|output| output.name.strip_suffix(".weight")).map(str::to_owned);
    (root, output)
}

fn mark(module: &mut Module, name: &str, tie: &dyn Fn(&str) -> Option<TieGroup>) {
    let last = name.rsplit('.').next().unwrap_or_default();
    let weight = module.parameters.iter().find(|parameter| parameter.name == "weight");
    (module.kind, module.class) = match weight.map(|weight| weight.shape.len()) {
        Some(2) if EMBEDDINGS.contains(&last) => (ModuleKind::Embedding, "Embedding".into()),
        Some(2) => (ModuleKind::Linear, "Linear".into()),
        Some(1) => (ModuleKind::Norm, "".into()),
        _ => (ModuleKind::Other, "".into()),
    };
    for parameter in &mut module.parameters {
        let full = if name.is_empty() {
            parameter.name.to_string()
        } else {
            format!("{name}.{}", parameter.name)
        };
        parameter.tie = tie(&full);
    }
    for child in &mut module.children {
        let part = child.name.part(0).into_owned();
        let full = if name.is_empty() { part } else { format!("{name}.{part}") };
        mark(Arc::make_mut(&mut child.module), &full, tie);
    }
}
