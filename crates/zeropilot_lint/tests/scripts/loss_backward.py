import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
loss = engine(torch.ones(1, 8).half()).float().sum()
loss.backward()
engine.step()
print("done")
