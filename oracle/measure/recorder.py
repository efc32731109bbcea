"""The bytes of all live tensor storages of this process, and the highest point since somebody last asked.

Every operator passes through a dispatch mode; a storage seen for the first time is counted until its finalizer
runs. What a kernel allocates inside itself is not seen, nor what it does in place only when nobody watches.
"""

import threading
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.live = {}
        self.total = 0
        self.peak = 0
        # Communication threads let go of tensors too.
        self._lock = threading.RLock()

    def see(self, tensor):
        if tensor.device.type == "meta":
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        with self._lock:
            if key in self.live:
                return
            size = storage.nbytes()
            self.live[key] = size
            self.total += size
            self.peak = max(self.peak, self.total)
        weakref.finalize(storage, self._gone, key)

    def _gone(self, key):
        with self._lock:
            self.total -= self.live.pop(key)

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        for value in tree_iter(result):
            if isinstance(value, torch.Tensor):
                self.see(value)
        return result

    def restart(self):
        """Forget the peak: the next one is the highest point from now on."""
        with self._lock:
            self.peak = self.total


def key_of(tensor):
    return tensor.untyped_storage()._cdata
