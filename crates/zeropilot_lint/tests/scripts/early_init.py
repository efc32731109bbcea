import deepspeed
import torch

with deepspeed.zero.Init(config_dict_or_path="ds.json"):
    model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
print("done")
