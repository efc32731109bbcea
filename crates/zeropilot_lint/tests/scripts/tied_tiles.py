import deepspeed
import torch
from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledFusedLogitsLoss, sequence_tiled_compute

deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)


def compute(self, x, y):
    return torch.nn.functional.cross_entropy(self.head(x).float().reshape(-1, 32), y.reshape(-1))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(32, 16)
        self.head = torch.nn.Linear(16, 32, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        hidden, weights = self.embedding(tokens), [self.head.weight]
        return TiledFusedLogitsLoss.apply(compute, self, hidden, tokens, None, 2, weights, "mean")


model = Model()
tokens = torch.randint(0, 32, (1, 8))
compute(model, model.embedding(tokens), tokens).backward()
alone = model.head.weight.grad.norm().item()
model.zero_grad()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
engine.backward(engine(tokens))
engine.step()
print(f"the norm is {float(engine.get_global_grad_norm()) / alone:.2f} times that of the plain loss")
