import deepspeed
import torch
from deepspeed.accelerator import get_accelerator

get_accelerator().is_fp16_supported = lambda: True
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
scales = []
for number in range(6):
    engine.backward(engine(torch.ones(1, 8).half()).float().sum() * 1e30)
    engine.step()
    scaler = getattr(engine.optimizer, "loss_scale_config", engine.optimizer)
    scales.append(int(scaler.cur_scale))
print(f"scales {scales}, {engine.skipped_steps} steps skipped")
