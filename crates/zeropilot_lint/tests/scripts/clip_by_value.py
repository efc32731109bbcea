import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
loader = torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
accelerator.backward(model(torch.ones(4, 8)).sum())
accelerator.clip_grad_value_(model.parameters(), 0.5)
print("done")
