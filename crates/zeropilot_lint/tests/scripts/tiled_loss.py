import deepspeed
import torch
from deepspeed.runtime.sequence_parallel.ulysses_sp import TiledFusedLogitsLoss

deepspeed.init_distributed(dist_backend="gloo")
torch.manual_seed(0)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(16, 16)
        self.head = torch.nn.Linear(16, 32, bias=False)

    def loss(self, hidden, labels):
        return torch.nn.functional.cross_entropy(self.head(hidden).float(), labels)

    def forward(self, x, labels):
        hidden, weights = self.body(x), [self.head.weight]
        return TiledFusedLogitsLoss.apply(Model.loss, self, hidden, labels, None, 2, weights, "mean")


model = Model()
x, labels = torch.randn(1, 8, 16), torch.randint(0, 32, (1, 8))
model.loss(model.body(x)[0], labels[0]).backward()
alone = torch.stack([parameter.grad.norm() for parameter in model.parameters()]).norm().item()
model.zero_grad()
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
for _ in range(engine.gradient_accumulation_steps()):
    engine.backward(engine(x, labels))
    engine.step()
print(f"the norm is {float(engine.get_global_grad_norm()) / alone:.2f} times that of the plain loss")
