import json

import deepspeed
import torch
from deepspeed.utils import safe_get_full_fp32_param

with open("ds.json") as file:
    config = json.load(file)


def build(from_masters):
    config["zero_optimization"]["load_from_fp32_weights"] = from_masters
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64)
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]


def masters(engine):
    return torch.cat([safe_get_full_fp32_param(one).flatten() for one in engine.module.parameters()])


first = build(True)
for number in range(3):
    first.backward(first(torch.ones(1, 64).bfloat16()).float().pow(2).mean())
    first.step()
saved = masters(first).clone()
first.save_checkpoint("saved")
for from_masters in (True, False):
    engine = build(from_masters)
    engine.load_checkpoint("saved")
    print(f"{from_masters}: {'equal' if torch.equal(masters(engine), saved) else 'rounded'}")
