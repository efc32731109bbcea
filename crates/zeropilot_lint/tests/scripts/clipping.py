import deepspeed
import torch
from deepspeed.utils import safe_get_full_fp32_param

torch.manual_seed(0)
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
before = [safe_get_full_fp32_param(one).clone() for one in engine.parameters()]
engine.backward(engine(torch.ones(4, 8)).pow(2).sum())
seen = torch.nn.utils.clip_grad_norm_(engine.parameters(), max_norm=0.5)
engine.step()
after = [safe_get_full_fp32_param(one) for one in engine.parameters()]
moved = sum((one - other).pow(2).sum() for one, other in zip(before, after)).sqrt()
print(f"seen {seen.item():.2f} moved {moved.item():.2f}")
