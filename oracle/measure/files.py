"""Loading and saving: what `from_pretrained` costs every rank, and what gathering a 16-bit checkpoint does.

Resident memory is read from the kernel by a thread, tensors are counted by the recorder; the first includes what the
runtime and the file cache need, the second is exact.
"""

import gc
import os
import threading

import deepspeed
import torch

from measure import case as cases
from measure.rank import Rank
from measure.recorder import Recorder


def resident():
    """Anonymous and file-backed resident bytes of this process."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return tuple(int(lines[key].split()[0]) * 1024 for key in ("RssAnon", "RssFile"))


class ResidentPeak:
    """The highest resident memory while inside, above what it was before."""

    def __enter__(self):
        self._before = resident()
        self.anonymous, self.file = 0, 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _look(self):
        anonymous, file = resident()
        self.anonymous = max(self.anonymous, anonymous - self._before[0])
        self.file = max(self.file, file - self._before[1])

    def _watch(self):
        while not self._stop.wait(0.002):
            self._look()

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()
        self._look()


def write_checkpoint(case, rank):
    """A checkpoint on disk, as somebody would download it."""
    model = cases.build_model({**case, "zero_init": False}).to(getattr(torch, case["file_dtype"]))
    model.save_pretrained(case["checkpoint"])
    return {"files": sum(os.path.getsize(os.path.join(case["checkpoint"], f)) for f in os.listdir(case["checkpoint"]))}


def storages(model):
    """Bytes of a model's parameters, or of this rank's shards of them, and of its buffers."""
    tensors = [getattr(p, "ds_tensor", p) for p in model.parameters()] + list(model.buffers())
    return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in tensors}.values())


def load(case, rank):
    """`from_pretrained` on every rank; with `zero_init` as HF Trainer does it in stage 3.

    Without it Transformers reads on threads the recorder does not see; then only the kernel's numbers have a peak.
    """
    from transformers.integrations import HfDeepSpeedConfig

    keep = HfDeepSpeedConfig(case["config"]) if case.get("zero_init") else None
    model_class = cases.model_class(case["hf_config"])
    recorder = Recorder()
    with ResidentPeak() as watched, recorder:
        model = model_class.from_pretrained(case["checkpoint"], dtype=getattr(torch, case["dtype"]))
    del keep
    return {
        "rank": rank,
        "tensors": {"rest": storages(model), **({"peak": recorder.peak} if case.get("zero_init") else {})},
        "resident": {"anonymous": watched.anonymous, "file": watched.file},
        "elements": sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters()),
    }


class Saver(Rank):
    """Some steps, then everything somebody may save and load, one after the other."""

    def run(self):
        super().run()
        directory = self.case["directory"]
        self.result["before"] = self.recorder.total
        with self.recorder:
            self.after("save_16bit", lambda: self.engine.save_16bit_model(directory, "model.bin"))
            self.after("save", lambda: self.engine.save_checkpoint(directory, tag="step"))
            self.after("load", lambda: self.engine.load_checkpoint(directory, tag="step"))
        kept = ("rank", "before", "after_step", "placed", "peak", "after", "after_collection", "calls")
        return {key: self.result[key] for key in kept if key in self.result}

    def after(self, name, work):
        deepspeed.comm.barrier()
        self.calls.take()
        self.phase(name, work)
        self.result.setdefault("after", {})[name] = self.recorder.total
        gc.collect()
        self.result.setdefault("after_collection", {})[name] = self.recorder.total
        self.result.setdefault("calls", {})[name] = self.calls.take()
