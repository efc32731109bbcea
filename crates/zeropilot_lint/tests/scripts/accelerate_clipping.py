import torch
from accelerate import Accelerator

torch.manual_seed(0)
accelerator = Accelerator()
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
loader = torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
before = [one.detach().clone() for one in model.parameters()]
accelerator.backward(model(torch.ones(4, 8)).pow(2).sum())
accelerator.clip_grad_norm_(model.parameters(), 0.5)
optimizer.step()
moved = sum((one - other).pow(2).sum() for one, other in zip(before, model.parameters())).sqrt()
print(f"moved {moved.item():.2f}")
