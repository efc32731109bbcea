import deepspeed
import torch

model = torch.nn.Linear(8, 8)
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
loader = [torch.ones(1, 8) for _ in range(20)]
losses = []
for batch in loader:
    loss = engine(batch).square().mean()
    engine.backward(loss)
    engine.step()
    losses.append(loss)
print("graphs kept:", sum(getattr(loss, "grad_fn", None) is not None for loss in losses))
