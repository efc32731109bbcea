"""Real training runs: starts the programs in `examples/` on ranks of their own. The protocol is `json_lines`'s.

Importing the engine takes longer than three optimizer steps, so it happens once, here; every rank is a fork of
this process that then runs the unchanged program as `__main__`, with the variables a launcher would set.

Greeting: {"deepspeed": "0.19.8", "fp16": true, "nvme": false}: what the engine can do on this machine
Request:  {"id": 1, "script": "<path>", "arguments": ["--deepspeed", "ds.json"], "directory": "<cwd>",
           "world_size": 2, "seconds": 120}
          With "loads_only": true the program runs until the engine has read its config, and no further: for
          configs that need what this machine lacks.
Answer:   {"id": 1, "codes": [0, 0], "output": "<standard output of rank 0>", "errors": "<end of standard error>"}
          A rank that did not end in time has the code null.
"""

import contextlib
import os
import runpy
import signal
import socket
import sys
import tempfile
import time
import traceback

import accelerate  # noqa: F401
import deepspeed
import peft  # noqa: F401
import transformers
import transformers.models.llama.modeling_llama  # noqa: F401
import transformers.models.t5.modeling_t5  # noqa: F401
from deepspeed.accelerator import get_accelerator
from deepspeed.ops.op_builder import AsyncIOBuilder

import json_lines

ERRORS_KEPT = 6000


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def stop_after_loading():
    """Ends a rank where the engine, with the process group running, has accepted its config."""

    def load(*_, config=None, config_params=None, **__):
        deepspeed.DeepSpeedConfig(config or config_params)
        print("config accepted", flush=True)
        raise SystemExit(0)

    # Building parameters on a disk needs the disk; the config is read again by `initialize`.
    deepspeed.zero.Init = lambda *_, **__: contextlib.nullcontext()
    deepspeed.initialize = load


def run_rank(request, rank, port, output, errors):
    """Becomes a rank. Never returns."""
    code = 1
    try:
        os.setpgid(0, 0)
        os.dup2(output.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(stream), "w") for stream in (1, 2))
        world_size = str(request["world_size"])
        os.environ.update(
            RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=world_size, LOCAL_WORLD_SIZE=world_size,
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port),
        )  # fmt: skip
        os.chdir(request["directory"])
        sys.argv = [request["script"], *request["arguments"]]
        sys.path.insert(0, os.path.dirname(request["script"]))
        if request.get("loads_only"):
            stop_after_loading()
        runpy.run_path(request["script"], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # any exception at all ends the user's run
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait(ranks, seconds):
    """The exit codes. As under a launcher, the first rank that fails takes the others with it."""
    codes = dict.fromkeys(ranks)
    end = time.monotonic() + seconds
    while None in codes.values() and time.monotonic() < end:
        for rank in ranks:
            if codes[rank] is None:
                ended, status = os.waitpid(rank, os.WNOHANG)
                codes[rank] = os.waitstatus_to_exitcode(status) if ended else None
        if any(codes.values()):
            break
        time.sleep(0.02)
    return codes


def answer(request):
    port = free_port()
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        sys.stdout.flush()
        ranks = []
        for rank in range(request["world_size"]):
            with open(os.devnull, "w") as nothing:
                pid = os.fork()
                if pid == 0:
                    run_rank(request, rank, port, output if rank == 0 else nothing, errors)
                ranks.append(pid)
        codes = wait(ranks, request["seconds"])
        for rank, code in codes.items():
            if code is None:
                os.kill(rank, signal.SIGKILL)
                os.waitpid(rank, 0)
        output.seek(0)
        errors.seek(0)
        return {
            "codes": list(codes.values()),
            "output": json_lines.text(output.read()),
            "errors": json_lines.text(errors.read()[-ERRORS_KEPT:]),
        }


def main():
    transformers.logging.set_verbosity_error()
    output = json_lines.claim_output()
    greeting = {
        "deepspeed": deepspeed.__version__,
        "fp16": bool(get_accelerator().is_fp16_supported()),
        "nvme": bool(AsyncIOBuilder().is_compatible()),
    }
    json_lines.serve(answer, greeting, output)


if __name__ == "__main__":
    main()
