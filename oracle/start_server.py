"""What the engine does with a config beyond loading it: it is built and trains a few steps.

Greeting: {"deepspeed": "0.19.8"}
Request:  {"id": 1, "text": "<file content>", "world_size": 2}
          With "client_optimizer": "torch.optim.AdamW" or "DeepSpeedCPUAdam" the script brings that one, whatever the
          config says. With "resume": {"text": ..., "world_size": 2} that config trains first and writes a checkpoint,
          which this one loads.
Answer:   {"id": 1, "runs": true, "probe": {...}}  or
          {"id": 1, "runs": false, "phase": "initialize" or "train", "error": "ValueError", "message": "..."}

Every request runs in processes of its own, one per rank, on gloo over loopback. The model is two layers of 16 × 16. The
script brings no optimizer if the config has an `optimizer` section, otherwise Adam, on the CPU where the
config offloads it. The probe holds what a person would notice: the optimizer's class, the parameters'
type, the learning rates, the losses, and every collective with its size.
"""

import json
import os
import socket
import sys
import tempfile
import traceback

# What an engine compiles when it is first used, it compiles by tools installed beside the interpreter; each version has
# sources of its own.
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")

import engine
import json_lines
import operators

CACHE = os.environ.get("ZEROPILOT_ORACLE_HOME", os.path.expanduser("~/.cache/zeropilot"))
os.environ.setdefault("TORCH_EXTENSIONS_DIR", os.path.join(CACHE, "extensions", engine.VERSION))

import deepspeed
import torch
import torch.distributed

operators.lend()
operators.refuse_deepcompile()
# Collectives go through gloo, whatever else could be compiled for them.
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False

STEPS = 3
SECONDS = 300
# Of a rank, libraries included. A config may ask for two to the power of any number.
MEMORY = 12 << 30
COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather_into_tensor", "reduce_scatter_tensor", "all_gather",
               "reduce_scatter", "all_to_all_single")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def client_optimizer(config, model, wanted):
    """What a script passes that knows its config: nothing if the engine is to build it."""
    if wanted == "torch.optim.AdamW":
        return torch.optim.AdamW(model.parameters(), lr=1e-3)
    if wanted == "DeepSpeedCPUAdam":
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        return DeepSpeedCPUAdam(model.parameters(), lr=1e-3)
    if "optimizer" in config:
        return None
    zero = config.get("zero_optimization")
    offload = zero.get("offload_optimizer") if isinstance(zero, dict) else None
    is_offloaded = isinstance(offload, dict) and offload.get("device") in ("cpu", "nvme")
    if is_offloaded or (isinstance(zero, dict) and zero.get("cpu_offload")):
        from deepspeed.ops.adam import DeepSpeedCPUAdam
        return DeepSpeedCPUAdam(model.parameters(), lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def record_collectives(record):
    for name in COLLECTIVES:
        real = getattr(torch.distributed, name, None)
        if real is None:
            continue

        def recording(*args, _real=real, _name=name, **kwargs):
            tensors = [argument for argument in args if isinstance(argument, torch.Tensor)]
            record.append([_name, sum(tensor.numel() for tensor in tensors), str(tensors[0].dtype) if tensors else ""])
            return _real(*args, **kwargs)

        setattr(torch.distributed, name, recording)


def train(path, state, wishes):
    """Builds the engine and trains; `state["phase"]` says how far it came."""
    state["phase"] = "initialize"
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 16))
    with open(path) as file:
        import hjson
        config = hjson.load(file)
    record = []
    record_collectives(record)
    runner, optimizer, _, scheduler = deepspeed.initialize(model=model,
                                                           model_parameters=list(model.parameters()),
                                                           optimizer=client_optimizer(config, model, wishes.get("client_optimizer")),
                                                           config=path)
    if "load" in wishes:
        state["phase"] = "load"
        place, _ = runner.load_checkpoint(wishes["load"])
        if place is None:
            raise FileNotFoundError("no checkpoint was loaded")
    state["phase"] = "train"
    dtype = next(runner.module.parameters()).dtype
    losses, rates = [], []
    for _ in range(STEPS * runner.gradient_accumulation_steps()):
        batch = torch.randn(2, 16).to(dtype)
        loss = runner(batch).float().pow(2).mean()
        runner.backward(loss)
        runner.step()
        losses.append(loss.item())
        rates.append(runner.get_lr()[0] if runner.basic_optimizer is not None else None)
    if "save" in wishes:
        state["phase"] = "save"
        runner.save_checkpoint(wishes["save"])
    return {
        "optimizer": type(optimizer).__name__,
        "basic_optimizer": type(runner.basic_optimizer).__name__,
        "scheduler": type(scheduler).__name__,
        "dtype": str(dtype),
        "losses": losses,
        "rates": rates,
        "collectives": record,
    }


def rank_main(rank, world_size, port, path, answer_path, wishes):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world_size), LOCAL_WORLD_SIZE=str(world_size),
                      MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    state = {"phase": "initialize"}
    try:
        deepspeed.init_distributed(dist_backend="gloo", verbose=False)
        result = {"runs": True, "probe": train(path, state, wishes)}
    except MemoryError:
        result = {"runs": False, "phase": "train", "error": "Killed", "message": "no answer in the memory given"}
    except BaseException as error:
        result = {"runs": False, "phase": state["phase"], "error": type(error).__name__,
                  "message": str(error)[:1000], "trace": traceback.format_exc()[-1500:]}
    with open(answer_path, "w") as file:
        json.dump(result, file)


def answer(request, directory):
    wishes = {name: request[name] for name in ("client_optimizer",) if request.get(name)}
    if not request.get("resume"):
        return run(request, directory, wishes)
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as checkpoint:
        first = run(request["resume"], directory, {"save": checkpoint})
        if not first["runs"]:
            raise RuntimeError(f"the run that writes the checkpoint fails: {first['message']}")
        return run(request, directory, {**wishes, "load": checkpoint})


def run(request, directory, wishes):
    world_size = request.get("world_size") or 1
    path = os.path.join(directory, "ds.json")
    with open(path, "w") as file:
        file.write(request["text"])
    answers = on_ranks(world_size, lambda rank, port, place: rank_main(rank, world_size, port, path, place, wishes), directory)
    failed = [one for one in answers if not one["runs"] and one["error"] != "Killed"]
    return (failed or answers)[0]


def on_ranks(world_size, main, directory):
    """What `main(rank, port, place)` writes to its place as JSON, in a process for each rank with its own limits."""
    port = free_port()
    children = []
    for rank in range(world_size):
        child = os.fork()
        if child == 0:
            import resource
            import signal
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(SECONDS)
            try:
                main(rank, port, os.path.join(directory, f"answer{rank}"))
            finally:
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    answers = []
    for rank in range(world_size):
        place = os.path.join(directory, f"answer{rank}")
        if not os.path.exists(place):
            answers.append({"runs": False, "phase": "train", "error": "Killed", "message": "no answer in time"})
            continue
        with open(place) as file:
            answers.append(json.load(file))
        os.remove(place)
    return answers


def main():
    # A config may name relative directories; nothing of it stays behind.
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory:
        os.chdir(directory)
        json_lines.serve(lambda request: answer(request, directory), {"deepspeed": engine.VERSION}, json_lines.claim_output())


if __name__ == "__main__":
    main()
