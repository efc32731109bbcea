"""What one product with a quantized matrix keeps for its backward pass, and what that pass allocates for a moment.

On the CPU bitsandbytes trains 8 bit with a function of its own (`MatMul8bitFp`); what GPUs use (`MatMul8bitLt`) is called
here directly. A product that keeps its tensors as plain attributes of its context hides them from autograd's hooks, so both
are listed. The weight and what goes with it exist anyway and are not counted.

"new_bytes_kept" is what the forward pass leaves besides its output and its input; "forward_peak" and "backward_peak" are the
highest points above what was alive before the pass, with its result (the output, the input's gradient). What an operator
of bitsandbytes allocates inside itself is not seen. `carried` ends with "input" where the tensor is the input itself.
"""

import logging
import warnings

import bitsandbytes as bnb
import torch
from bitsandbytes.autograd._functions import MatMul8bitLt

from measure.recorder import Recorder

ROWS, INSIDE, OUTSIDE = 96, 256, 384


def described(tensor):
    return [str(tensor.dtype).removeprefix("torch."), list(tensor.shape), tensor.numel() * tensor.element_size()]


def four_bit(bias, double):
    layer = bnb.nn.Linear4bit(
        INSIDE, OUTSIDE, bias=bias, compute_dtype=torch.bfloat16, quant_type="nf4", compress_statistics=double
    )
    return layer.to(torch.bfloat16).to("cpu").requires_grad_(False)


def eight_bit(bias, threshold):
    layer = bnb.nn.Linear8bitLt(INSIDE, OUTSIDE, bias=bias, has_fp16_weights=False, threshold=threshold)
    return layer.to(torch.bfloat16).to("cpu").requires_grad_(False)


def called(layer, function):
    """The layer with the product of a GPU in place of the CPU's."""
    if function is None:
        return layer

    def run(x):
        layer.state.is_training = True
        if layer.weight.CB is not None:
            layer.init_8bit_state()
        bias = None if layer.bias is None else layer.bias.to(x.dtype)
        return function.apply(x, layer.weight, None, bias, layer.state)

    return run


def owned(layer):
    """The packed matrix and all that goes with it."""
    yield layer.weight
    if layer.bias is not None:
        yield layer.bias
    if isinstance(layer, bnb.nn.Linear8bitLt):
        tensors = [layer.state.CB, layer.state.SCB, layer.weight.CB, layer.weight.SCB]
    else:
        state = layer.weight.quant_state
        tensors = [state.absmax, state.code, state.offset]
        tensors += [state.state2.absmax, state.state2.code] if state.nested else []
    yield from (tensor for tensor in tensors if tensor is not None)


def attributes(node, x, own):
    """Tensors that the node of a custom function carries besides those it saved."""
    found = []
    for name in ("tensors", "tensor_states"):
        for tensor in getattr(node, name, None) or ():
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage()._cdata not in own:
                same = tensor.untyped_storage()._cdata == x.untyped_storage()._cdata
                found.append([*described(tensor), "input"] if same else described(tensor))
    return found


def product(name, layer, function=None, outliers=0, shape=(ROWS, INSIDE)):
    torch.manual_seed(1)
    x = torch.randn(*shape, dtype=torch.bfloat16)
    for column in range(outliers):
        x[..., 3 * column] = 9.0
    x.requires_grad_(True)
    saved, own = [], {layer.weight.untyped_storage()._cdata}
    run = called(layer, function)
    recorder = Recorder()
    with recorder:
        for tensor in (x, *owned(layer)):
            recorder.see(tensor)
        run(x)  # what the first use makes stays
        recorder.restart()
        before = recorder.total
        with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(described(t)) or t, lambda t: t):
            y = run(x)
        kept = recorder.total - before - y.numel() * y.element_size()
        forward_peak = recorder.peak - before
        node = y.grad_fn
        while node is not None and "MatMul" not in node.name():
            node = node.next_functions[0][0] if node.next_functions else None
        carried = attributes(node, x, own) if node is not None else []
        gradient = torch.ones_like(y)
        recorder.restart()
        before = recorder.total
        torch.autograd.grad(y, x, gradient)
        backward_peak = recorder.peak - before
    return {
        "name": name,
        "input": described(x),
        "matrix": [OUTSIDE, INSIDE],
        "function": node.name() if node is not None else y.grad_fn.name(),
        "saved": saved,
        "carried": carried,
        "new_bytes_kept": kept,
        "forward_peak": forward_peak,
        "backward_peak": backward_peak,
    }


def products():
    warnings.filterwarnings("ignore")
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
    cube = (2, ROWS // 2, INSIDE)
    return [
        product("nf4 double", four_bit(False, True)),
        product("nf4 double, bias, three dimensions", four_bit(True, True), shape=cube),
        product("nf4 plain", four_bit(False, False)),
        product("int8 on a GPU", eight_bit(False, 6.0), MatMul8bitLt),
        product("int8 on a GPU, three dimensions, bias", eight_bit(True, 6.0), MatMul8bitLt, shape=cube),
        product("int8 on a GPU, 5 outlying columns", eight_bit(False, 6.0), MatMul8bitLt, outliers=5),
        product("int8 on a GPU, threshold 0", eight_bit(False, 0.0), MatMul8bitLt),
        product("int8 on the CPU", eight_bit(False, 6.0)),
    ]
