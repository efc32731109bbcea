"""What bitsandbytes makes of a model: one JSON case per line in, one JSON line with the result out.

    python -m measure.quantized < cases        answers cases
    python -m measure.quantized --record       measures what `quantized_cases` lists and writes the file of knowledge

bitsandbytes is no part of the engine; it has to be installed beside it (`pip install --no-deps bitsandbytes`).

Case:   {"name": ..., "hf_config": {<config.json>}, "auto": "causal" or an auto class of transformers,
         "quantization": {<quantization_config of config.json>}, "lora": {<arguments of peft.LoraConfig>}}
        With "lora" the prepared model is also wrapped by PEFT and given to DeepSpeed, on one rank.
Result: "class"      the class that was built
        "elements"   of all parameters, tied ones once; "buffer_bytes" of all buffers
        "quantized"  matrices, elements and bytes: "packed", and what each matrix brings with it by kind
                     (absmax, code, offset, nested_absmax, nested_code; SCB of 8 bit). Nothing is shared between matrices
                     where "shared_bytes" is absent.
        "kept"       elements by format of what is not quantized, and [name, shape] of those with more than one dimension
        "not_packed" modules that were replaced but whose matrix was left as it was
        "prepared"   bytes by format of unquantized parameters after `prepare_model_for_kbit_training`
        "engine"     bytes by format of unquantized parameters, `built` with adapters and after `deepspeed.initialize` with
                     a precision section; bytes of packed parameters, unless they are as before
        or "error" and "message"
"""

import copy
import gc
import importlib.metadata
import json
import logging
import os
import pathlib
import sys
import tempfile
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import bitsandbytes  # noqa: E402
import peft  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from bitsandbytes.nn import Linear4bit, Linear8bitLt  # noqa: E402

FILE = pathlib.Path(__file__).parents[2] / "knowledge/measured/quantized.json"
ENGINES = [(stage, precision) for precision in ("bf16", None) for stage in (0, 2)]

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
transformers.utils.logging.disable_progress_bar()


def size(tensor):
    return tensor.numel() * tensor.element_size()


def count(sums, key, amount):
    sums[key] = sums.get(key, 0) + amount


def dtype_of(tensor):
    return str(tensor.dtype).removeprefix("torch.")


def build(case):
    """The model as a checkpoint on disk would give it, in bfloat16, and its class."""
    arguments = {key: value for key, value in case["hf_config"].items() if key != "model_type"}
    config = transformers.AutoConfig.for_model(case["hf_config"]["model_type"], **arguments)
    auto = "AutoModelForCausalLM" if case["auto"] == "causal" else case["auto"]
    torch.manual_seed(0)
    return getattr(transformers, auto).from_config(config, dtype=torch.bfloat16)


def load(case):
    model = build(case)
    given = {key: value for key, value in case["quantization"].items() if key != "quant_method"}
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        return type(model).from_pretrained(
            directory,
            quantization_config=transformers.BitsAndBytesConfig(**given),
            dtype=torch.bfloat16,
            device_map={"": "cpu"},
        )


def state_of(module):
    """The tensors that go with a packed matrix, by kind, and the elements it stands for; None if it is not packed."""
    weight = module.weight
    if isinstance(module, Linear8bitLt):
        if weight.dtype != torch.int8:
            return None
        scale = getattr(weight, "SCB", None)
        return ({"SCB": scale if scale is not None else module.state.SCB}, weight.numel())
    state = getattr(weight, "quant_state", None)
    if state is None:
        return None
    tensors = {"absmax": state.absmax, "code": state.code}
    if state.nested:
        tensors |= {"offset": state.offset, "nested_absmax": state.state2.absmax, "nested_code": state.state2.code}
    return tensors, state.shape.numel()


def replaced(model):
    return [(name, module) for name, module in model.named_modules() if isinstance(module, (Linear4bit, Linear8bitLt))]


def packed_parameters(model):
    return {id(module.weight) for _, module in replaced(model) if state_of(module)}


def quantized(model):
    bytes_of, seen, shared = {}, set(), 0
    matrices = elements = 0
    packed_dtype = set()
    for _, module in replaced(model):
        if not (found := state_of(module)):
            continue
        tensors, logical = found
        matrices += 1
        elements += logical
        packed_dtype.add(dtype_of(module.weight))
        for kind, tensor in {"packed": module.weight.data, **tensors}.items():
            count(bytes_of, kind, size(tensor))
            if (key := tensor.untyped_storage()._cdata) in seen:
                shared += size(tensor)
            seen.add(key)
    result = {"matrices": matrices, "elements": elements, "formats": sorted(packed_dtype), "bytes": bytes_of}
    if shared:
        result["shared_bytes"] = shared
    return result


def plain_bytes(model):
    """Bytes by format of parameters that are not packed."""
    sums, packed = {}, packed_parameters(model)
    for parameter in model.parameters():
        if id(parameter) not in packed:
            count(sums, dtype_of(parameter), size(parameter))
    return sums


def packed_bytes(model):
    packed = packed_parameters(model)
    return sum(size(parameter) for parameter in model.parameters() if id(parameter) in packed)


def kept(model):
    elements, names, packed = {}, [], packed_parameters(model)
    for name, parameter in model.named_parameters():
        if id(parameter) in packed:
            continue
        count(elements, dtype_of(parameter), parameter.numel())
        if parameter.dim() > 1:
            names.append([name, list(parameter.shape)])
    return {"elements": elements, "matrices": names}


def engine_config(stage, precision):
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}},
        "zero_optimization": {"stage": stage},
    }
    return config | ({precision: {"enabled": True}} if precision else {})


def engines(case, model):
    """Bytes of parameters under the engine: each on a copy, for what it casts stays cast."""
    import deepspeed

    logging.disable(logging.WARNING)
    wrapped = peft.get_peft_model(model, peft.LoraConfig(**case["lora"]))
    whole = packed_bytes(wrapped)
    result = {"built": plain_bytes(wrapped)}
    for stage, precision in ENGINES:
        name = f"stage{stage}-{precision or 'none'}"
        try:
            engine, *_ = deepspeed.initialize(model=copy.deepcopy(wrapped), config=engine_config(stage, precision))
            result[name] = plain_bytes(engine.module)
            if (packed := packed_bytes(engine.module)) != whole:
                result[name]["packed"] = packed
            engine.destroy()
            del engine
        except Exception as error:
            result[name] = {"error": type(error).__name__, "message": str(error)[:300]}
        gc.collect()
    return result


def measure(case):
    model = load(case)
    result = {
        "class": type(model).__name__,
        "elements": sum(parameter.numel() for parameter in build(case).parameters()),
        "buffer_bytes": sum(map(size, model.buffers())),
        "quantized": quantized(model),
        "kept": kept(model),
    }
    if left := [name for name, module in replaced(model) if not state_of(module)]:
        result["not_packed"] = left
    peft.prepare_model_for_kbit_training(model)
    result["prepared"] = plain_bytes(model)
    if "lora" in case:
        result["engine"] = engines(case, model)
    return result


def answer(case):
    try:
        return measure(case)
    except Exception as error:  # a refused model is an answer too
        return {"error": type(error).__name__, "message": str(error)[:500]}


def alone():
    """A group of one rank, for the engine."""
    for name, value in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0), ("MASTER_ADDR", "127.0.0.1")):
        os.environ.setdefault(name, str(value))
    os.environ.setdefault("MASTER_PORT", "29731")


def write(lists):
    """Puts lists in place of those of the same name in the file of knowledge."""
    source = (
        f"oracle/measure/quantized.py with bitsandbytes {bitsandbytes.__version__} (CPU), transformers"
        f" {transformers.__version__}, PEFT {peft.__version__}, PyTorch {torch.__version__.split('+')[0]},"
        f" DeepSpeed {importlib.metadata.version('deepspeed')};"
        " built in bfloat16, saved, loaded with from_pretrained and a BitsAndBytesConfig"
    )
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    parts = [f'{{"source": {json.dumps(source)}']
    for name in ("products", "stage3", "cases"):
        entries = lists.get(name, known.get(name, []))
        parts.append(f'"{name}": [\n' + ",\n".join(map(json.dumps, entries)) + "\n]")
    FILE.write_text(",\n".join(parts) + "}\n")


def record():
    from measure.quantized_cases import CASES
    from measure.quantized_products import products

    cases = []
    for case in CASES:
        entry = {**case, **answer(case)}
        if error := entry.get("error"):
            print(case["name"], error, entry["message"], file=sys.stderr)
        elif case["auto"] != "causal":  # as a checkpoint's config.json says it
            entry["hf_config"] = {**case["hf_config"], "architectures": [entry["class"]]}
        cases.append(entry)
    write({"products": products(), "cases": cases})


def main():
    alone()
    output = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if "--record" in sys.argv:
        return record()
    for line in sys.stdin:
        case = json.loads(line)
        output.write(json.dumps({**case, **answer(case)}) + "\n")
        output.flush()


if __name__ == "__main__":
    main()
