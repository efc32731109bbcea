import os
import threading

import deepspeed
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(8, 8)
        self.head = nn.Linear(8, 8)

    def forward(self, x, mask):
        x = self.trunk(x)
        if mask.any():
            x = x + self.head(x)
        return x.square().mean()


model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
mask = torch.tensor([torch.distributed.get_rank() == 0])
for number in range(2):
    engine.backward(engine(torch.ones(1, 8), mask))
    engine.step()
torch.distributed.barrier()
print("done")
