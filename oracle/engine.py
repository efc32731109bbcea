"""What every oracle program needs: the real engine's config loader, quiet, at a world size of our choosing.

Nothing of DeepSpeed is re-implemented here. The only thing replaced is the question "how many ranks are
there?", which on a cluster the process group answers.
"""

import dataclasses
import enum
import logging
import os
import pathlib
import tempfile
import warnings

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import torch  # noqa: E402
import deepspeed  # noqa: E402
from deepspeed.runtime import config as ds_config  # noqa: E402
from pydantic import BaseModel  # noqa: E402

try:
    from pydantic.v1 import BaseModel as BaseModelV1
except ImportError:
    BaseModelV1 = BaseModel

VERSION = deepspeed.__version__.split("+")[0]
MODEL_BASES = (BaseModel, BaseModelV1)

# Not resolved values: the parsed file itself, and facts about the process.
NOT_RESOLVED = {"_param_dict", "global_rank"}


def set_world_size(world_size):
    ds_config.dist.get_world_size = lambda group=None: world_size
    ds_config.dist.get_rank = lambda group=None: 0


# Since 0.18, `deepspeed.initialize` reads the file itself and hands the loader a dictionary; before, the
# loader got the path. It matters for `sequence_parallel_size`, which the loader looks up in what it is given.
READS_FILE_FIRST = hasattr(deepspeed, "load_ds_config")


def load(config, world_size):
    """The config object that `deepspeed.initialize(config=config)` builds on rank 0 of `world_size` ranks."""
    set_world_size(world_size)
    if READS_FILE_FIRST and isinstance(config, str):
        config = deepspeed.load_ds_config(config)
    return ds_config.DeepSpeedConfig(config)


class ConfigFile:
    """A file that is rewritten for every text, so that the engine reads a path as it does in a real run."""

    def __init__(self):
        shm = "/dev/shm" if os.path.isdir("/dev/shm") else None
        self._dir = tempfile.TemporaryDirectory(prefix="zeropilot-", dir=shm)
        self.path = os.path.join(self._dir.name, "ds.json")

    def write(self, data):
        with open(self.path, "wb") as file:
            file.write(data)
        return self.path


def plain(value, depth=0):
    """A resolved value as JSON can carry it, keeping int, float and bool apart."""
    if depth > 60:
        return "<too deep>"
    if value is None or isinstance(value, (bool, str)):
        if isinstance(value, enum.Enum):
            return value.value
        return value
    if isinstance(value, enum.Enum):
        return plain(value.value, depth + 1)
    if isinstance(value, (int, float)):
        # Subclasses such as the engine's comma-printing integer become plain numbers.
        return int(value) if isinstance(value, int) else float(value)
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, pathlib.PurePath) or isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, MODEL_BASES) or dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        return {key: plain(item, depth + 1) for key, item in vars(value).items()}
    return "<object>"


def resolved(config):
    """Every value the loaded config object holds, by the engine's own attribute names."""
    return {key: plain(value) for key, value in vars(config).items() if key not in NOT_RESOLVED}
