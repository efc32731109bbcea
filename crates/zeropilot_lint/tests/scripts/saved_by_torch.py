import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
torch.save(engine.module.state_dict(), "out.pt")
print("elements", sum(one.numel() for one in torch.load("out.pt").values()))
