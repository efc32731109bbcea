import os
import threading

import deepspeed
import torch


def save(engine, number):
    engine.save_checkpoint("out", tag=str(number))


model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
watch = threading.Timer(20, lambda: (print("hangs", flush=True), os._exit(1)))
watch.daemon = True
watch.start()
for number in range(2):
    engine.backward(engine(torch.ones(1, 8)).sum())
    engine.step()
    if number == 1 and torch.distributed.get_rank() == 0:
        save(engine, number)
# Who is done waits for the others without a collective.
store = torch.distributed.distributed_c10d._get_default_store()
store.set(f"done {torch.distributed.get_rank()}", "yes")
store.wait(["done 0", "done 1"])
print("done")
