import deepspeed
import torch

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 100)
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, lr_scheduler=scheduler, config="ds.json")
for number in range(4):
    engine.backward(engine(torch.ones(1, 8)).sum())
    engine.step()
    scheduler.step()
print(f"scheduler at {scheduler.last_epoch}")
