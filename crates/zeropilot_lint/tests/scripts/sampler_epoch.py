import deepspeed
import torch
from torch.utils.data import DataLoader, DistributedSampler

model = torch.nn.Linear(1, 1)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
data = [torch.ones(1) * number for number in range(64)]
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=1, sampler=sampler)
orders = []
for epoch in range(2):
    orders.append([])
    for batch in loader:
        engine.backward(engine(batch).sum())
        engine.step()
        orders[epoch].append(batch.item())
print("the order is", "the same" if orders[0] == orders[1] else "another one")
