import deepspeed
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

model = AutoModelForCausalLM.from_pretrained("m")
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
engine.module.save_pretrained("out")
print("elements", sum(one.numel() for one in load_file("out/model.safetensors").values()))
