import deepspeed
import torch

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for number in range(4):
    engine.backward(engine(torch.ones(1, 8)).sum())
    engine.step()
    scheduler.step()
print(f"the engine's rate {engine.get_lr()[0]}, the scheduler's {scheduler.get_last_lr()[0]}")
