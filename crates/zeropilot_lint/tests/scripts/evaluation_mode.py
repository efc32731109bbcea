import deepspeed
import torch


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return model(torch.ones(1, 1000)).sum().item()


model = torch.nn.Sequential(torch.nn.Linear(1000, 1000), torch.nn.Dropout(0.5))
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
loader = [torch.ones(1, 1000) for _ in range(2)]
engine.train()
for epoch in range(2):
    for batch in loader:
        output = engine(batch)
        engine.backward(output.sum())
        engine.step()
    dropped = (output == 0).sum().item()
    print(f"epoch {epoch} dropped", "some" if dropped else "nothing")
    evaluate(engine)
