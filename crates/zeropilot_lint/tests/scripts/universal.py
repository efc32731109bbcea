import json
import os
from argparse import Namespace

import deepspeed
import torch
from deepspeed.checkpoint import ds_to_universal

with open("ds.json") as file:
    config = json.load(file)


def build():
    model = torch.nn.Linear(64, 64)
    return deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)[0]


engine = build()
engine.backward(engine(torch.ones(1, 64)).sum())
engine.step()
engine.save_checkpoint("saved", tag="one")
for injects in (False, True):
    try:
        ds_to_universal.main(Namespace(input_folder="saved/one", output_folder="saved/universal", num_extract_workers=1,
                                       num_merge_workers=1, keep_temp_folder=False, strict=True,
                                       inject_missing_state=injects))
        print(f"with inject_missing_state {injects}: converted")
    except AssertionError as error:
        print(f"with inject_missing_state {injects}: {error}")
with open("saved/latest_universal", "w") as file:
    file.write("universal")
config["checkpoint"] = {"load_universal": True}
for stage in (config["zero_optimization"]["stage"], 4 - config["zero_optimization"]["stage"]):
    config["zero_optimization"]["stage"] = stage
    try:
        build().load_checkpoint("saved")
        print(f"stage {stage} loads")
    except (AssertionError, TypeError, RuntimeError, KeyError) as error:
        print(f"stage {stage} fails with {type(error).__name__}")
