import os
import threading

import deepspeed
import torch
from transformers import AutoModelForCausalLM, StoppingCriteria, StoppingCriteriaList


class EarlyOnOneRank(StoppingCriteria):

    def __call__(self, ids, scores, **more):
        is_done = os.environ["RANK"] == "0" and ids.shape[1] > 6
        return torch.full((ids.shape[0], ), is_done, dtype=torch.bool)


def give_up():
    print("hangs", flush=True)
    os._exit(3)


model = AutoModelForCausalLM.from_pretrained("m")
engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config="ds.json")
patience = threading.Timer(30, give_up)
patience.start()
stop = StoppingCriteriaList([EarlyOnOneRank()])
text = engine.module.generate(torch.ones(1, 4, dtype=torch.long), max_new_tokens=24, do_sample=False, stopping_criteria=stop)
torch.distributed.barrier()
patience.cancel()
print("done")
