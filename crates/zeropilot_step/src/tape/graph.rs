//! The nodes of the autograd graph, kept compact: everything variable lives in shared arenas.

use super::trace::{Mark, StorageId};
use super::work::Arithmetic;
use crate::model::ModuleId;

/// Where the gradient of a tensor goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nowhere: the tensor needs no gradient.
    None,
    /// To an output of a node.
    Node { node: u32, output: u8 },
    /// To the accumulator of a leaf.
    Leaf(u32),
    /// The tensor needs a gradient, but belongs to a re-run whose graph is thrown away.
    Ghost,
}

impl Target {
    pub(crate) fn wants(self) -> bool {
        self != Self::None
    }
}

/// One input of a node: where its gradient goes and what it looked like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input {
    pub(crate) target: Target,
    pub(crate) elements: u64,
    pub(crate) element_bytes: u8,
    /// A parameter, directly or through a transposed view.
    pub(crate) is_parameter: bool,
}

/// A gradient on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gradient {
    pub(crate) storage: StorageId,
    pub(crate) elements: u64,
    pub(crate) element_bytes: u8,
    /// A view of another gradient tensor, which it keeps alive: nothing is added to it in place.
    pub(crate) is_view: bool,
}

/// A range of one of the arenas.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Span {
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

pub(crate) const NO_FRAME: u32 = u32::MAX;

/// One node of the graph. Its index is its sequence number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Node {
    pub(crate) formula: Formula,
    pub(crate) inputs: Span,
    pub(crate) saved: Span,
    pub(crate) outputs: Span,
    /// The checkpointed layer the saved slots belong to.
    pub(crate) frame: u32,
    pub(crate) arithmetic: Arithmetic,
    /// Tensor handles and later nodes that refer to this node.
    pub(crate) references: u32,
    /// Gradients still to come before the node may run.
    pub(crate) pending: u32,
    pub(crate) mark: Option<Mark>,
}

/// How a node turns the gradients of its outputs into those of its inputs: only the storages.
///
/// `n` is the number of elements of the incoming gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Formula {
    /// The same gradient to every input (sums, aliases, copies); broadcast inputs are reduced and
    /// other element types cast by the general rule.
    Pass,
    /// The same gradient to the first input, new tensors to the others.
    PassFirst,
    /// A reshaped view of the gradient; a broadcast input is reduced by the general rule.
    Reshape,
    /// The gradient, copied first because its layout cannot be viewed.
    Copy,
    /// A view of the gradient to each input (concatenation; sum over a dimension).
    View,
    /// One new tensor per wanted input, of that input's size, in order.
    Fresh,
    /// One new tensor per wanted input, of the gradient's element type and the input's size.
    FreshLike,
    /// One new tensor of the input's size for every input, wanted or not (fused kernels), beside the scratch tensors
    /// at this place of the core's list.
    FreshAll(Option<u32>),
    /// The second input's gradient, then the first one's, each of the gradient's size.
    Product,
    /// A matrix product: the second input's gradient, then the first one's, of the inputs' sizes.
    MatrixProduct,
    /// A matrix product with a frozen weight of four bits (x, w): the wide weight, then x.
    QuantizedProduct,
    /// A fused bias-add matrix product of inputs (bias, x, w): x, then w, then the bias.
    BiasMatrixProduct,
    /// The ZeRO-3 linear of inputs (x, w, bias): x, w, and the bias summed by the function itself.
    ZeroLinear,
    /// Two temporaries and the result, all of the gradient's size.
    TwoTemporaries,
    /// The gradient to the first input, a negated copy to the second.
    Difference,
    /// Quotient in place (a, b): a scratch chain for b, then a.
    Quotient,
    /// One tensor of the input's size, made from zeros that are freed right after: the recorder
    /// sees both, a real run writes into the zeros.
    Scatter,
    /// Grouped matrix product (x, w): w, then x.
    Grouped,
    /// `baddbmm` with a scale (bias, x, y): each product, then its scaled copy.
    ScaledBatchProduct,
    /// Several outputs that were views of one tensor: their gradients are concatenated.
    Gather,
    /// The gelu BLOOM writes by hand.
    BloomGelu,
    /// Copy into a slice of a fresh tensor (base, source).
    SliceCopy,
    /// Rows written in place (base, rows): zeros of the rows' size while the base's gradient is copied, then the rows'.
    IndexPut,
    /// Gradients that forward has made and kept: they take the place of what was saved.
    Made,
    /// A product whose result was never kept whole: made again tile by tile. Gradients of the wanted inputs are added up in
    /// 32 bits beside the first scratch tensor at this place of the core's list, which stays until they are cast; the
    /// others go before.
    Tiled(u32),
    /// Ranks that share a sequence send each other's parts back; a gradient that does not lie in that order is copied first.
    AllToAll { ranks: u32, copies: bool },
    /// Ranks that share a layer add up the gradients that each has of the same input, in place.
    AllReduce { ranks: u32 },
    /// A number of each rank: the sum of what all ranks know about this rank's.
    GatherNumbers { ranks: u32 },
    /// `grad * (x - result).exp()`: two temporaries and the result, of the input's size.
    LogSumExp,
    /// A part that runs again with a graph of its own.
    Part(u32),
    /// Begin of a module's backward.
    ModuleStart(ModuleId),
    /// End of a module's backward, for one of its arguments.
    ModuleEnd(ModuleId),
}

impl Formula {
    /// Whether it keeps a weight as a view of the storage that the weight had, beside what autograd saves: stage 3 frees
    /// that storage only when the node goes. bitsandbytes' `MatMul4Bit` does so.
    pub(crate) fn keeps_views(self) -> bool {
        self == Self::QuantizedProduct
    }

    /// Which inputs of a product are its factors.
    pub(crate) fn factors(self) -> std::ops::Range<usize> {
        match self {
            Self::BiasMatrixProduct | Self::ScaledBatchProduct => 1..3,
            Self::Made => 0..0,
            _ => 0..2,
        }
    }
}
