"""What optimizers and schedulers take, asked from their constructors: one JSON object on standard output.

The engine passes `optimizer.params` and `scheduler.params` to a constructor as they stand, so a name that the constructor
does not have ends the run when the engine is built. Which constructor it is depends on the type, on
offload and on `torch_adam`; the engine takes some parameters out before (`taken_out`).
"""

import importlib
import inspect
import json

import engine

import torch
from deepspeed.ops.adagrad import DeepSpeedCPUAdagrad
from deepspeed.ops.adam import DeepSpeedCPUAdam, FusedAdam
from deepspeed.ops.lamb import FusedLamb
from deepspeed.ops.lion import DeepSpeedCPULion, FusedLion
from deepspeed.runtime import config as ds_config
from deepspeed.runtime import lr_schedules

TYPES = (str, int, float, bool, type(None))


def parameters(constructor, given=2):
    """Names a constructor takes after `self` and what the engine gives it: the model's parameters or the optimizer."""
    required, optional = [], {}
    for name, parameter in list(inspect.signature(constructor.__init__).parameters.items())[given:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            return None
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            optional[name] = parameter.default if isinstance(parameter.default, TYPES) else repr(parameter.default)
    return {"required": required, "optional": optional}


def classes(module, base):
    found = {}
    for name in dir(module):
        item = getattr(module, name)
        if inspect.isclass(item) and issubclass(item, base) and item is not base and not name.startswith("_"):
            taken = parameters(item)
            if taken is not None:
                found[name] = taken
    return found


def compressed():
    """Optimizers that compress what they send, which newer engines no longer have. They are given the engine, too."""
    places = {"onebitadam": ("adam", "OnebitAdam"), "zerooneadam": ("zoadam", "ZeroOneAdam"), "onebitlamb": ("lamb", "OnebitLamb")}
    found = {}
    for name, (module, item) in places.items():
        try:
            module = importlib.import_module(f"deepspeed.runtime.fp16.onebit.{module}")
        except ImportError:
            continue
        found[name] = {place: parameters(getattr(module, item), given=3) for place in ("gpu", "cpu")}
    return found


def main():
    built = {
        "adam": {"gpu": FusedAdam, "cpu": DeepSpeedCPUAdam, "torch": torch.optim.AdamW},
        "adamw": {"gpu": FusedAdam, "cpu": DeepSpeedCPUAdam, "torch": torch.optim.AdamW},
        "adagrad": {"gpu": torch.optim.Adagrad, "cpu": DeepSpeedCPUAdagrad},
        "lamb": {"gpu": FusedLamb, "cpu": FusedLamb},
        "lion": {"gpu": FusedLion, "cpu": DeepSpeedCPULion},
    }
    known = [name for name in ds_config.DEEPSPEED_OPTIMIZERS]
    optimizers = {name: {place: parameters(item) for place, item in places.items()} for name, places in built.items()}
    optimizers |= {name: places for name, places in compressed().items() if name in known}
    schedulers = {
        name: parameters(getattr(lr_schedules, name))
        for name in dir(lr_schedules)
        if inspect.isclass(getattr(lr_schedules, name)) and getattr(lr_schedules, name).__module__ == lr_schedules.__name__
    }
    print(json.dumps({
        "deepspeed": engine.VERSION,
        "deepspeed_optimizers": sorted(known),
        "optimizers": optimizers,
        "torch_optimizers": classes(torch.optim, torch.optim.Optimizer),
        "schedulers": schedulers,
        "torch_schedulers": classes(torch.optim.lr_scheduler, torch.optim.lr_scheduler.LRScheduler),
    }, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
