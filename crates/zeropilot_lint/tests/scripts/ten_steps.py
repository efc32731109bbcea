import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for step in range(1, 11):
    engine.backward(engine(torch.ones(1, 8)).sum())
    engine.step()
    print(f"step {step}")
