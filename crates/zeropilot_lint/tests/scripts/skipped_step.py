import os
import threading

import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
loader = [torch.ones(1, 8) for _ in range(6)]
loader[2] *= float("nan") if torch.distributed.get_rank() == 1 else 1
for batch in loader:
    loss = engine(batch).square().mean()
    if torch.isnan(loss):
        continue
    engine.backward(loss)
    engine.step()
# Who is done waits for the others without a collective.
store = torch.distributed.distributed_c10d._get_default_store()
store.set(f"done {torch.distributed.get_rank()}", "yes")
store.wait(["done 0", "done 1"])
print("done")
