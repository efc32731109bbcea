import deepspeed
import torch
from deepspeed.utils import safe_get_full_fp32_param

torch.manual_seed(0)
model = torch.nn.Linear(8, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")


def weight():
    full = safe_get_full_fp32_param(model.weight)
    return (model.weight if full is None else full).detach().clone()


before = weight()
engine.backward(engine(torch.ones(1, 8)).sum())
optimizer.step()
engine.step()
print(f"moved by {(weight() - before).abs().max().item():.2f}")
