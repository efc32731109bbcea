import torch
from accelerate import Accelerator

accelerator = Accelerator()
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
torch.save(accelerator.unwrap_model(model).state_dict(), "out.pt")
print("elements", sum(one.numel() for one in torch.load("out.pt").values()))
