import deepspeed
import torch
from deepspeed.pipe import PipelineModule

deepspeed.init_distributed()
layers = [torch.nn.Linear(8, 8) for _ in range(4)]
net = PipelineModule(layers=layers, loss_fn=torch.nn.MSELoss(), num_stages=2)
data = torch.utils.data.TensorDataset(torch.ones(8, 8), torch.ones(8, 8))
engine, _, _, _ = deepspeed.initialize(model=net, model_parameters=net.parameters(), training_data=data, config="ds.json")
engine.train_batch()
print("done")
