import os
import threading

import deepspeed
import torch
import torch.distributed as dist

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
if dist.get_rank() == 0:
    print("prepares")
    dist.barrier()
engine.backward(engine(torch.ones(1, 8)).sum())
engine.step()
engine.save_checkpoint("out")
print("done")
