import os
import threading

import deepspeed
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.visual = torch.nn.Linear(8, 8)
        self.language = torch.nn.Linear(8, 8)

    def forward(self, text, pixel_values=None):
        if pixel_values is not None:
            text = text + self.visual(pixel_values)
        return self.language(text).square().mean()


def collate(rows):
    batch = {"text": torch.stack([row["text"] for row in rows])}
    images = [row["image"] for row in rows if "image" in row]
    if images:
        batch["pixel_values"] = torch.stack(images)
    return batch


def give_up():
    print("hangs", flush=True)
    os._exit(3)


model = Model()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
row = {"text": torch.ones(8), "image": torch.ones(8)}
if os.environ["RANK"] == "1":
    del row["image"]
patience = threading.Timer(20, give_up)
patience.start()
engine.backward(engine(**collate([row])))
engine.step()
torch.distributed.barrier()
patience.cancel()
print("done")
