import deepspeed
import torch
import torch.distributed.nn.functional as across
from deepspeed.runtime.sequence_parallel.ulysses_sp import UlyssesSPAttentionHF
from transformers import LlamaConfig, LlamaForCausalLM

deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)
config = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
    vocab_size=64, attn_implementation="sdpa",
)  # fmt: skip
model = LlamaForCausalLM(config)
ids = torch.randint(0, 64, (1, 16), generator=torch.Generator().manual_seed(1))
labels = torch.nn.functional.pad(ids, (0, 1), value=-100)[:, 1:]
positions = torch.arange(16)[None]

# The whole sequence on one rank.
logits = model(input_ids=ids, position_ids=positions).logits.float()
whole = torch.nn.functional.cross_entropy(logits.view(-1, 64), labels.view(-1))
whole.backward()
alone = torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm().item()
model.zero_grad()

mpu = UlyssesSPAttentionHF.register_with_transformers(
    model_name_or_path=model, core_attn_implementation="sdpa", sequence_parallel_size=2, micro_batch_size=1,
    seq_length=16, seq_length_is_variable=True,
)  # fmt: skip
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json", mpu=mpu)
begin = 8 * torch.distributed.get_rank()
mine = slice(begin, begin + 8)
logits = engine(input_ids=ids[:, mine], position_ids=positions[:, mine]).logits.float()
counted = (labels[:, mine] != -100).sum()
loss = torch.nn.functional.cross_entropy(logits.view(-1, 64), labels[:, mine].reshape(-1))
group = mpu.get_sequence_parallel_group()
losses, counts = across.all_gather(loss, group=group), across.all_gather(counted, group=group)
shared = sum(one * count for one, count in zip(losses, counts)) / sum(counts)
engine.backward(shared)
engine.step()
print(f"the norm is {float(engine.get_global_grad_norm()) / alone:.2f} times that of one rank")
print("the loss is", "equal" if abs(shared - whole) < 1e-6 else "another one")
