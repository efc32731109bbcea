import os
import threading

import deepspeed
import torch
from torch.utils.data import DataLoader

deepspeed.init_distributed()
rank, world_size = torch.distributed.get_rank(), torch.distributed.get_world_size()
rows = [torch.ones(8) for _ in range(5)][rank::world_size]
loader = DataLoader(rows, batch_size=1)
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
for batch in loader:
    engine.backward(engine(batch).sum())
    engine.step()
# Who is done waits for the others without a collective.
store = torch.distributed.distributed_c10d._get_default_store()
store.set(f"done {torch.distributed.get_rank()}", "yes")
store.wait(["done 0", "done 1"])
print("done")
