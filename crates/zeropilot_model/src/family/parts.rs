//! Modules that families share.

use std::borrow::Cow;

use crate::architecture::{Module, ModuleKind};

/// Whether a linear module has a bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bias {
    Yes,
    No,
}

impl From<bool> for Bias {
    fn from(on: bool) -> Self {
        if on { Self::Yes } else { Self::No }
    }
}

/// `nn.Linear` under the name of a class.
pub(crate) fn linear_of(
    class: impl Into<Cow<'static, str>>,
    inputs: u64,
    outputs: u64,
    bias: Bias,
) -> Module {
    let linear = Module::of_kind(class, ModuleKind::Linear).parameter("weight", [outputs, inputs]);
    if bias == Bias::Yes { linear.parameter("bias", [outputs]) } else { linear }
}

/// `nn.Linear`.
pub(crate) fn linear(inputs: u64, outputs: u64, bias: Bias) -> Module {
    linear_of("Linear", inputs, outputs, bias)
}

/// `Conv1D` of transformers, which always has a bias.
pub(crate) fn transposed_linear(inputs: u64, outputs: u64) -> Module {
    Module::of_kind("Conv1D", ModuleKind::TransposedLinear)
        .parameter("weight", [inputs, outputs])
        .parameter("bias", [outputs])
}

/// `nn.Conv1d` in which every channel has its own filter. PEFT adapts none of these.
pub(crate) fn depthwise_convolution(channels: u64, width: u64, bias: Bias) -> Module {
    let convolution = Module::new("Conv1d").parameter("weight", [channels, 1, width]);
    if bias == Bias::Yes { convolution.parameter("bias", [channels]) } else { convolution }
}

/// An embedding under the name of a class.
pub(crate) fn embedding_of(class: impl Into<Cow<'static, str>>, rows: u64, width: u64) -> Module {
    Module::of_kind(class, ModuleKind::Embedding).parameter("weight", [rows, width])
}

/// `nn.Embedding`.
pub(crate) fn embedding(rows: u64, width: u64) -> Module {
    embedding_of("Embedding", rows, width)
}

/// `nn.Conv1d`, `nn.Conv2d` or `nn.Conv3d`, by the number of sides of the kernel.
pub(crate) fn convolution<const SIDES: usize>(
    inputs: u64,
    outputs: u64,
    kernel: [u64; SIDES],
    bias: Bias,
) -> Module {
    let shape: Vec<u64> = [outputs, inputs].into_iter().chain(kernel).collect();
    let convolution = Module::of_kind(format!("Conv{SIDES}d"), ModuleKind::Convolution)
        .parameter("weight", shape);
    if bias == Bias::Yes { convolution.parameter("bias", [outputs]) } else { convolution }
}

/// A normalisation with a scale only.
pub(crate) fn norm(class: impl Into<Cow<'static, str>>, shape: impl Into<Vec<u64>>) -> Module {
    Module::of_kind(class, ModuleKind::Norm).parameter("weight", shape)
}

/// `nn.LayerNorm` with scale and bias.
pub(crate) fn layer_norm(width: u64) -> Module {
    layer_norm_with(width, Bias::Yes)
}

/// `nn.LayerNorm`.
pub(crate) fn layer_norm_with(width: u64, bias: Bias) -> Module {
    let norm = norm("LayerNorm", [width]);
    if bias == Bias::Yes { norm.parameter("bias", [width]) } else { norm }
}

/// The feed-forward block of Llama: gate, up and down.
pub(crate) fn gated_mlp(class: String, hidden: u64, intermediate: u64, bias: Bias) -> Module {
    Module::new(class)
        .with("gate_proj", linear(hidden, intermediate, bias))
        .with("up_proj", linear(hidden, intermediate, bias))
        .with("down_proj", linear(intermediate, hidden, bias))
}

/// A router that is a module of its own kind.
pub(crate) fn router(class: String, experts: u64, hidden: u64) -> Module {
    Module::of_kind(class, ModuleKind::Router).parameter("weight", [experts, hidden])
}

/// Stacked experts, each matrix `[outputs, inputs]`.
pub(crate) fn experts(
    class: String,
    count: u64,
    per_token: u64,
    hidden: u64,
    intermediate: u64,
) -> Module {
    Module::of_kind(class, ModuleKind::Experts { count, per_token, transposed: false })
        .parameter("gate_up_proj", [count, 2 * intermediate, hidden])
        .parameter("down_proj", [count, hidden, intermediate])
}
