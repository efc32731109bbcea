import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
steps = engine.gradient_accumulation_steps()
for number in range(32):
    engine.backward(engine(torch.ones(1, 8)).sum())
    if (number + 1) % steps == 0:
        engine.step()
print(f"updates {engine.global_steps}")
