import deepspeed
import torch
from deepspeed.runtime.superoffload import superoffload_stage3

deepspeed.init_distributed(dist_backend="gloo")
# Only the check for NVIDIA GPUs is left out.
superoffload_stage3._validate_superoffload_accelerator = lambda: None
model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
engine.backward(engine(torch.randn(1, 8)).mean())
engine.step()
print("done")
