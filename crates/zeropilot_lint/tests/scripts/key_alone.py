import deepspeed
import torch

deepspeed.init_distributed(dist_backend="gloo")
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
print("ranks that share a sequence:", engine.sequence_parallel_size)
