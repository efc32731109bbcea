import deepspeed
import torch
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import LlamaConfig, LlamaForCausalLM

deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    vocab_size=64,
)  # fmt: skip
model = LlamaForCausalLM(config)
data = TensorDataset(torch.randint(0, 64, (4, 16)))
sampler = DistributedSampler(data)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for (ids,) in DataLoader(data, batch_size=1, sampler=sampler):
    engine.backward(engine(input_ids=ids, labels=ids).loss)
    engine.step()
print("a step counts", engine.train_batch_size())
