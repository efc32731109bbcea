import os
import threading

import deepspeed
import torch
from torch import nn


class Moe(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 1, bias=False) for _ in range(2))

    def forward(self, x, route):
        total = x.sum() * 0
        for number, expert in enumerate(self.experts):
            rows = (route == number).nonzero().flatten()
            if rows.numel() == 0:
                continue
            total = total + expert(x[rows]).sum()
        return total


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 4, bias=False)
        self.moe = Moe()

    def forward(self, x, route):
        return self.moe(self.trunk(x), route)


model = Model()
nn.init.eye_(model.trunk.weight)
for expert in model.moe.experts:
    nn.init.zeros_(expert.weight)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
rank = torch.distributed.get_rank()
# One token on each rank, 1 for expert 0 and 2 for expert 1: the mean over ranks is 0.5 and 1.
engine.backward(engine(torch.ones(1, 4) * (rank + 1), torch.tensor([rank])))
engine.step()
with deepspeed.zero.GatheredParameters(list(model.parameters())):
    moved = [f"{-expert.weight[0, 0].item():.1f}" for expert in model.moe.experts]
torch.distributed.barrier()
print("experts moved by", " and ".join(moved), "" if moved == ["0.5", "1.0"] else "instead of 0.5 and 1.0")
