import deepspeed
import torch
from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledMLP
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama import modeling_llama


def tiled(self, x):
    weights = [self.down_proj.weight, self.gate_proj.weight, self.up_proj.weight]

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))

    return TiledMLP.apply(forward, self, x, 2, weights)


modeling_llama.LlamaMLP.forward = tiled
deepspeed.init_distributed(dist_backend="gloo")
config = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    vocab_size=64,
)  # fmt: skip
model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=4, target_modules="all-linear"))
model.enable_input_require_grads()
adapters = [parameter for parameter in model.parameters() if parameter.requires_grad]
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=adapters, config="ds.json")
ids = torch.randint(0, 64, (1, 16))
for _ in range(2):
    loss = engine(input_ids=ids, labels=ids).loss
    engine.backward(loss)
    engine.step()
print("done")
