import deepspeed
import torch

model = torch.nn.Linear(4, 1, bias=False)
torch.nn.init.zeros_(model.weight)
engine, optimizer, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
loader = [torch.ones(1, 4) for _ in range(4)]
for batch in loader:
    optimizer.zero_grad()
    engine.backward(engine(batch).sum())
    engine.step()
with deepspeed.zero.GatheredParameters(list(model.parameters())):
    print(f"moved by {-model.weight[0, 0].item():.2f}")
