import deepspeed
import torch
from deepspeed.moe.layer import MoE

deepspeed.init_distributed()
layer = MoE(hidden_size=8, expert=torch.nn.Linear(8, 8), num_experts=2, ep_size=1)
engine, _, _, _ = deepspeed.initialize(model=layer, model_parameters=layer.parameters(), config="ds.json")
print("done")
