"""Every call of the engine's communication library, in order, and a moment's rest after each.

A call is [count, kind, bytes per element, elements in, elements out (0: in place), ranks, 1 if asynchronous];
neighbours that are equal are counted. `reduce->k` goes to rank k.

Gloo lets go of its tensors on a thread of its own, some microseconds after a call has returned. Without the rest a
peak would now and then contain a tensor that a faster thread had already released.
"""

import functools
import time

import torch
from deepspeed.comm.torch import TorchBackend

SETTLE = 0.0004

# Parameters of the library's functions, in order: what is given, what is received, or in place what is both.
PARAMETERS = {
    "all_reduce": "given op group async_op",
    "all_reduce_coalesced": "given op group async_op",
    "reduce": "given dst op group async_op",
    "reduce_scatter": "received given op group async_op",
    "reduce_scatter_tensor": "received given op group async_op",
    "broadcast": "given src group async_op",
    "all_gather": "received given group async_op",
    "all_gather_into_tensor": "received given group async_op",
    "all_gather_coalesced": "received given group async_op",
    "all_to_all_single": "received given output_sizes input_sizes group async_op",
    "all_to_all": "received given group async_op",
    "barrier": "group async_op",
    "new_group": "ranks",
}
# The names callers use for them.
GIVEN = {"tensor", "tensors", "input", "input_tensor", "input_tensors", "input_list", "input_tensor_list"}
RECEIVED = {"output", "output_tensor", "output_tensors", "tensor_list", "output_tensor_list"}


def elements(value):
    if value is None:
        return 0
    if isinstance(value, torch.Tensor):
        return value.numel()
    return sum(elements(item) for item in value)


def element_size(value):
    return value.element_size() if isinstance(value, torch.Tensor) else element_size(value[0])


class Calls:
    def __init__(self):
        self._list = []
        self._inside = False

    def take(self):
        """The calls since the last time."""
        taken, self._list = self._list, []
        return taken

    def add(self, kind, arguments):
        given, received = arguments.get("given"), arguments.get("received")
        members = arguments.get("ranks")
        ranks = len(members) if members else torch.distributed.get_world_size(arguments.get("group"))
        size = 0 if given is None else element_size(given)
        asynchronous = int(bool(arguments.get("async_op")))
        if kind == "reduce":
            kind = f"reduce->{arguments['dst']}"
        call = [kind, size, elements(given), elements(received), ranks, asynchronous]
        if self._list and self._list[-1][1:] == call:
            self._list[-1][0] += 1
        else:
            self._list.append([1, *call])

    def wrap(self, kind, method):
        names = PARAMETERS[kind].split()

        @functools.wraps(method)
        def wrapper(backend, *positional, **keywords):
            if self._inside:
                return method(backend, *positional, **keywords)
            arguments = dict(zip(names, positional))
            for name, value in keywords.items():
                arguments["given" if name in GIVEN else "received" if name in RECEIVED else name] = value
            self.add(kind, arguments)
            self._inside = True
            try:
                return method(backend, *positional, **keywords)
            finally:
                self._inside = False

        return wrapper


def listen():
    """Starts to record the calls of this process."""
    calls = Calls()
    for kind in PARAMETERS:
        setattr(TorchBackend, kind, calls.wrap(kind, getattr(TorchBackend, kind)))
    work = torch.distributed.Work
    wait = work.wait

    def wait_and_settle(self, *arguments, **keywords):
        result = wait(self, *arguments, **keywords)
        time.sleep(SETTLE)
        return result

    work.wait = wait_and_settle
    return calls
