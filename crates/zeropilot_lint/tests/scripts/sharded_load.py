import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo")
whole = torch.nn.Linear(8, 8)
weights = {name: torch.ones_like(value) for name, value in whole.state_dict().items()}
with deepspeed.zero.Init(config_dict_or_path="ds.json"):
    model = torch.nn.Linear(8, 8)
model.load_state_dict(weights)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
with deepspeed.zero.GatheredParameters(list(engine.parameters())):
    print("loaded", float(engine.module.weight.mean()))
