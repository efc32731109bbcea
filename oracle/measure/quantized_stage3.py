"""A quantized model under ZeRO-3 as transformers loads it there: two ranks, what each holds, and whether it trains.

    python -m measure.quantized_stage3        writes "stage3" of the file of knowledge

`HfDeepSpeedConfig` is alive before `from_pretrained`, as under the Trainer. Moments: `loaded`, `initialized`, `forward`, and
`trained` (after backward and step). At each, bytes of parameters on a rank:
    packed, plain             what the parameters themselves hold (whole, or gathered)
    packed_part, plain_part   the rank's partitions, those of persistent parameters too
    state                     what goes with packed matrices
    integers                  all live tensors of one byte per element, whoever holds them (packed matrices stored so, their
                              partitions, and the scales of double quantization)
"load_peak" is the highest point of live tensors inside `from_pretrained`. "loss" and "gradient" (the norm) are the engine's,
those in "without" are of a copy of the same model that is cast as the engine casts it and never partitioned.
Adapters are drawn on each rank and the engine takes those of rank 0, so only its "without" can be compared.
"prepare" is `prepare_model_for_kbit_training`, which turns activation checkpointing on.
"""

import copy
import gc
import json
import os
import sys
import tempfile
import traceback

import torch
import torch.multiprocessing

from measure import quantized
from measure.quantized_cases import DOUBLE, INT8, PLAIN, SEPARATE, llama
from measure.recorder import Recorder

WORLD = 2
PORT = 29741
BFLOAT = {**DOUBLE, "bnb_4bit_quant_storage": "bfloat16"}
MODEL = {**llama, "initializer_range": 0.3}  # so that a wrong matrix shows in the loss
VARIANTS = [
    {"name": "nf4 double", "quantization": DOUBLE},
    {"name": "nf4 double, no persistent parameters", "quantization": DOUBLE, "persistence": 0},
    {"name": "nf4 double, prepared", "quantization": DOUBLE, "persistence": 0, "prepare": True},
    {"name": "nf4 double stored as bfloat16", "quantization": BFLOAT, "persistence": 0},
    {"name": "nf4 plain without adapters", "quantization": PLAIN, "persistence": 0, "lora": False},
    {"name": "int8", "quantization": INT8, "persistence": 0},
    {"name": "nf4 double with a device map", "quantization": DOUBLE, "device_map": {"": "cpu"}},
]


def config(variant):
    zero = {"stage": 3}
    if "persistence" in variant:
        zero["stage3_param_persistence_threshold"] = variant["persistence"]
    return quantized.engine_config(3, "bf16") | {"zero_optimization": zero}


def integers():
    gc.collect()
    storages = {}
    for tensor in gc.get_objects():
        if isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu" and tensor.element_size() == 1:
            storages[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
    return sum(storages.values())


def held(model):
    sums, packed = {}, {id(module.weight): quantized.state_of(module) for _, module in quantized.replaced(model)}
    for parameter in model.parameters():
        kind = "packed" if packed.get(id(parameter)) else "plain"
        quantized.count(sums, kind, quantized.size(parameter.data))
        if (part := getattr(parameter, "ds_tensor", None)) is not None:
            quantized.count(sums, kind + "_part", quantized.size(part))
    for found in packed.values():
        for tensor in (found[0] if found else {}).values():
            if tensor is not None:
                quantized.count(sums, "state", quantized.size(tensor))
    return sums | {"integers": integers()}


def without(model, tokens):
    model = copy.deepcopy(model)
    packed = quantized.packed_parameters(model)
    for parameter in model.parameters():
        if id(parameter) not in packed:
            parameter.data = parameter.data.bfloat16()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    gradients = [p.grad.float().norm() ** 2 for p in model.parameters() if p.grad is not None]
    return {"loss": round(float(loss), 4), "gradient": round(float(sum(gradients) ** 0.5), 3)}


def train(variant, directory, result):
    import deepspeed
    import peft
    import transformers
    from transformers.integrations import HfDeepSpeedConfig

    asked = config(variant)
    keep = HfDeepSpeedConfig(asked)
    deepspeed.init_distributed("gloo")
    recorder = Recorder()
    more = {"device_map": variant["device_map"]} if "device_map" in variant else {}
    with recorder:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            directory,
            quantization_config=transformers.BitsAndBytesConfig(**variant["quantization"]),
            dtype=torch.bfloat16,
            **more,
        )
    result["load_peak"] = recorder.peak
    result["loaded"] = held(model)
    result["zero_parameters_after_load"] = sum(hasattr(p, "ds_id") for p in model.parameters())
    if variant.get("prepare"):
        model = peft.prepare_model_for_kbit_training(model)
    if variant.get("lora", True):
        model = peft.get_peft_model(model, peft.LoraConfig(r=4, target_modules=SEPARATE))
    tokens = torch.arange(2, 34).reshape(1, 32)
    model.train()
    result["without"] = without(model, tokens)
    gc.collect()
    engine, *_ = deepspeed.initialize(
        model=model, model_parameters=[p for p in model.parameters() if p.requires_grad], config=asked
    )
    result["initialized"] = held(engine.module)
    loss = engine(input_ids=tokens, labels=tokens).loss
    result["loss"] = round(float(loss), 4)
    result["forward"] = held(engine.module)
    engine.backward(loss)
    engine.step()
    result["gradient"] = round(float(engine.get_global_grad_norm()), 3)
    del loss
    result["trained"] = held(engine.module)
    del keep


def rank(number, variant, directory, port):
    os.environ |= {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(WORLD)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    result = {"rank": number}
    try:
        train(variant, directory, result)
    except Exception as error:
        result["error"] = type(error).__name__
        result["message"] = str(error)[:400]
        if number == 0:
            traceback.print_exc()
    with open(os.path.join(directory, f"rank{number}.json"), "w") as output:
        json.dump(result, output)
    sys.stdout.flush()
    os._exit(0)


def run(variant, port):
    with tempfile.TemporaryDirectory() as directory:
        quantized.build({"hf_config": MODEL, "auto": "causal"}).save_pretrained(directory)
        torch.multiprocessing.spawn(rank, (variant, directory, port), nprocs=WORLD)
        ranks = [json.load(open(os.path.join(directory, f"rank{number}.json"))) for number in range(WORLD)]
    return {**variant, "hf_config": MODEL, "config": config(variant), "ranks": ranks}


def main():
    measured = [run(variant, PORT + place) for place, variant in enumerate(VARIANTS)]
    if "--print" in sys.argv:
        for entry in measured:
            print("RESULT", json.dumps({key: entry[key] for key in ("name", "ranks")}))
    else:
        quantized.write({"stage3": measured})


if __name__ == "__main__":
    main()
