import deepspeed
import torch

model = torch.nn.Linear(8, 8).bfloat16()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for number in range(2):
    output = engine(torch.ones(1, 8).bfloat16())
    engine.backward(output.float().sum())
    engine.step()
print(f"trains in {next(engine.module.parameters()).dtype}, computes in {output.dtype}")
