import os
import threading

import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
if torch.distributed.get_rank() == 0:
    with deepspeed.zero.GatheredParameters(list(engine.parameters())):
        torch.save(engine.module.state_dict(), "out.pt")
torch.distributed.barrier()
print("done")
