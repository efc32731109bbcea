import deepspeed
import torch
from torch.utils.data import DataLoader

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
loader = DataLoader([torch.ones(8) for _ in range(16)], batch_size=4)
trained = 0
for batch in loader:
    engine.backward(engine(batch).sum())
    engine.step()
    trained += len(batch)
print(f"trained on {trained}, counts {engine.global_samples}")
