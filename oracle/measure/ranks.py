"""The ranks of a case as forks of a process that has the engine imported and its operators loaded.

A rank that dies, refuses or hangs ends the case with an error that says so; nothing of a case outlives it.
"""

import ctypes
import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import tempfile
import time
import traceback
from datetime import timedelta

import torch

TIMEOUT = 120
PR_SET_PDEATHSIG = 1


OPERATORS = ("CPUAdam", "FusedAdam", "CPUAdagrad", "CPULion", "ShareMemComm")


def load_operators(names=OPERATORS):
    """Builds what the engine would build on first use, so that no rank has to."""
    from deepspeed.ops import op_builder

    # The compiler is driven by a ninja beside the interpreter.
    os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    loaded = []
    for name in names:
        try:
            getattr(op_builder, f"{name}Builder")().load(verbose=False)
            loaded.append(name)
        except Exception:
            pass
    return loaded


def join(rank, world, listener):
    """The process group; the engine finds it and does not make one of its own."""
    import deepspeed
    from deepspeed.accelerator import get_accelerator

    # DeepSpeed asks for fp16 instructions; PyTorch also computes in fp16 on processors without them.
    get_accelerator().is_fp16_supported = lambda: True
    port = listener.getsockname()[1]
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world), LOCAL_SIZE=str(world))
    store = torch.distributed.TCPStore(
        "127.0.0.1",
        port,
        world,
        is_master=rank == 0,
        timeout=timedelta(seconds=TIMEOUT),
        master_listen_fd=os.dup(listener.fileno()) if rank == 0 else None,
        use_libuv=True,
    )
    torch.distributed.init_process_group("gloo", store=store, rank=rank, world_size=world)
    deepspeed.init_distributed("gloo", auto_mpi_discovery=False, verbose=False)


def import_for_the_next(modules):
    """What a rank had to import, the next ranks find imported."""
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception:  # made at run time, or only importable there
            pass


def rank_main(work, case, rank, listener, pipe):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    known = set(sys.modules)
    try:
        join(rank, case["world"], listener)
        answer = {"answer": work(case, rank), "imported": [name for name in sys.modules if name not in known]}
    except BaseException as error:  # the engine raises whatever it likes, SystemExit too
        place = traceback.extract_tb(error.__traceback__)[-1]
        answer = {
            "error": type(error).__name__,
            "message": str(error)[:2000],
            "place": f"{os.path.basename(place.filename)}:{place.lineno} {place.name}",
        }
    try:
        with os.fdopen(pipe, "w") as output:
            output.write(json.dumps(answer))
    except BrokenPipeError:  # the case is over
        pass
    finally:
        # No destructors: peers may be gone, and gloo would wait for them.
        os._exit(0)


class Group:
    """The running ranks of one case."""

    def __init__(self, work, case):
        self.answers = {}
        self._pids = []
        self._selector = selectors.DefaultSelector()
        self._pieces = {}
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for rank in range(case["world"]):
                self._fork(work, case, rank, listener)

    def _fork(self, work, case, rank, listener):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            rank_main(work, case, rank, listener, writer)
        os.close(writer)
        self._pids.append(pid)
        self._pieces[rank] = []
        self._selector.register(reader, selectors.EVENT_READ, rank)

    def wait(self, seconds):
        """Until all ranks have answered, one has failed, or the time is over."""
        deadline = time.monotonic() + seconds
        while self._selector.get_map():
            events = self._selector.select(max(0.0, deadline - time.monotonic()))
            if not events:
                silent = sorted(key.data for key in self._selector.get_map().values())
                return {"error": "Timeout", "message": f"ranks {silent} said nothing for {seconds} s"}
            for key, _ in events:
                if failure := self._read(key):
                    return failure
        return None

    def _read(self, key):
        piece = os.read(key.fd, 1 << 16)
        if piece:
            self._pieces[key.data].append(piece)
            return None
        self._selector.unregister(key.fd)
        os.close(key.fd)
        text = b"".join(self._pieces[key.data])
        if not text:
            status = self._reap(key.data)
            return {"error": "RankDied", "message": f"rank {key.data} ended without an answer (status {status})"}
        answer = json.loads(text)
        if "error" in answer:
            return {"rank": key.data, **answer}
        import_for_the_next(answer["imported"])
        self.answers[key.data] = answer["answer"]
        return None

    def _reap(self, rank):
        pid, self._pids[rank] = self._pids[rank], None
        return os.waitpid(pid, 0)[1]

    def end(self):
        for key in list(self._selector.get_map().values()):
            self._selector.unregister(key.fd)
            os.close(key.fd)
        for rank, pid in enumerate(self._pids):
            if pid is not None:
                os.kill(pid, signal.SIGKILL)
                self._reap(rank)


def run(work, case):
    """What `work(case, rank)` returned on every rank, in order, or the first failure as {"error", "message"}."""
    # What is here now is never garbage for a rank, and the engine collects garbage more than once.
    gc.collect()
    gc.freeze()
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory:
        group = Group(work, {**case, "directory": directory})
        try:
            failure = group.wait(case.get("timeout") or TIMEOUT)
        finally:
            group.end()
    return failure or [group.answers[rank] for rank in range(case["world"])]


def measured(case):
    """A case as it is written down: facts and calls once, bytes by rank."""
    from measure.rank import Rank

    answers = run(lambda case, rank: Rank(case, rank).run(), case)
    if isinstance(answers, dict):
        return answers
    first = answers[0]
    same = all(answer["traffic"] == first["traffic"] for answer in answers)
    return {
        **{key: value for key, value in first.items() if key not in ("result", "traffic")},
        "ranks": [answer["result"] for answer in answers],
        "traffic": first["traffic"] if same else [answer["traffic"] for answer in answers],
    }
