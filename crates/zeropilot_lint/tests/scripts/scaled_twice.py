import deepspeed
import torch

model = torch.nn.Linear(4, 1, bias=False)
torch.nn.init.zeros_(model.weight)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
scaler = torch.amp.GradScaler("cpu")
engine.backward(scaler.scale(engine(torch.ones(1, 4)).sum()))
engine.step()
print(f"moved by {-model.weight[0, 0].item():.0f}")
