import deepspeed
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.arange(64.0).view(8, 8))
loader = DataLoader(data, batch_size=1, shuffle=True)
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
seen = torch.zeros(8)
for number, (batch,) in enumerate(loader):
    seen[number] = batch[0, 0]
    engine.backward(engine(batch).square().mean())
    engine.step()
first = seen.clone()
torch.distributed.broadcast(first, 0)
different = (first != seen).any().float()
torch.distributed.all_reduce(different)
print("all saw", "different samples" if different else "the same")
