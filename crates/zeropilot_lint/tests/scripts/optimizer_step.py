import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for number in range(4):
    engine.backward(engine(torch.ones(1, 8)).sum())
    optimizer.step()
    optimizer.zero_grad()
