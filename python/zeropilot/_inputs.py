"""Types that functions accept as a model or a config."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping, Optional, Protocol, Sequence, Union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import _Job, _Live


class Parameter(Protocol):
    """Attributes of a ``torch.nn.Parameter`` that zeropilot reads; it never reads the values."""

    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def requires_grad(self) -> bool: ...


class Module(Protocol):
    """Methods of a ``torch.nn.Module`` that zeropilot calls."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]: ...


class Job:
    """A training job: a launch script, a training script, a framework YAML file, a DeepSpeed config or a directory.

    Every function that accepts a model also accepts a job, and uses the settings in the job's files. ``model`` replaces
    the model of the job. ``launch`` is the number of the run if the job starts several; the first is 1.
    """

    def __init__(
        self, path: "Union[str, os.PathLike[str]]", *, model: Optional[str] = None, launch: Optional[int] = None
    ) -> None:
        self.path = os.fspath(path)
        self.model = model
        self.launch = launch

    @classmethod
    def read(
        cls, path: "Union[str, os.PathLike[str]]", *, model: Optional[str] = None, launch: Optional[int] = None
    ) -> "Job":
        """Return the job that a file describes; raise ``FileNotFoundError`` if the file does not exist."""
        if not os.path.exists(path):
            raise FileNotFoundError(os.fspath(path))
        return cls(path, model=model, launch=launch)

    def __repr__(self) -> str:
        return f"Job({self.path!r}, model={self.model!r}, launch={self.launch!r})"


Model = Union[str, "os.PathLike[str]", Module, Job]
Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def model_argument(model: Model) -> "Union[str, _Live, _Job]":
    """Return a name or path unchanged; for a module, its class name, config and parameter names and shapes."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, Job):
        return model.path, model.launch, model.model
    if not hasattr(model, "named_parameters"):
        raise TypeError(
            f"a model must be a name, a path, a Job or a torch.nn.Module, not {type(model).__name__}"
        )
    parameters = [
        (name, [int(size) for size in _shape(parameter)], str(parameter.dtype), bool(parameter.requires_grad))
        for name, parameter in model.named_parameters()
    ]
    return type(model).__name__, _transformers_config(model), parameters


def _shape(parameter: Any) -> Sequence[int]:
    # Under ZeRO-3, a parameter is empty, and DeepSpeed keeps its shape in `ds_shape`.
    shape: Sequence[int] = getattr(parameter, "ds_shape", parameter.shape)
    return shape


def _transformers_config(model: Module) -> Optional[str]:
    config = getattr(model, "config", None)
    to_dict = getattr(config, "to_dict", None)
    if to_dict is None:
        return None
    values = dict(to_dict())
    values["architectures"] = [type(model).__name__]
    return json.dumps(values, default=str)


def config_argument(config: Config) -> tuple[str, Optional[str]]:
    """Return the name of a config, and its text unless it is a file."""
    if isinstance(config, Mapping):
        return "config", json.dumps(config, indent=2, ensure_ascii=False)
    return os.fspath(config), None
