"""What a caller may hand over as a model or a config."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Mapping, Optional, Protocol, Sequence, Union

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._native import _Job, _Live


class Parameter(Protocol):
    """What is read of a ``torch.nn.Parameter``: never its values."""

    @property
    def shape(self) -> Sequence[int]: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def requires_grad(self) -> bool: ...


class Module(Protocol):
    """What is read of a ``torch.nn.Module``."""

    def named_parameters(self) -> Iterable[tuple[str, Any]]: ...


class Job:
    """A training job: a launch script, a training script, a framework's YAML, a DeepSpeed config or a directory.

    Every function that takes a model takes a job, and answers for what its files say. ``model`` replaces the job's own;
    ``launch`` chooses one of several runs, counted from 1.
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
        """The job that a file describes; an error if the file is not there."""
        if not os.path.exists(path):
            raise FileNotFoundError(os.fspath(path))
        return cls(path, model=model, launch=launch)

    def __repr__(self) -> str:
        return f"Job({self.path!r}, model={self.model!r}, launch={self.launch!r})"


Model = Union[str, "os.PathLike[str]", Module, Job]
Config = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def model_argument(model: Model) -> "Union[str, _Live, _Job]":
    """A name or a path as it is; of a module what it is called, its config, and names and shapes."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model)
    if isinstance(model, Job):
        return model.path, model.launch, model.model
    if not hasattr(model, "named_parameters"):
        raise TypeError(
            f"a model is a name, a path, a Job or a torch.nn.Module, not {type(model).__name__}"
        )
    parameters = [
        (name, [int(size) for size in _shape(parameter)], str(parameter.dtype), bool(parameter.requires_grad))
        for name, parameter in model.named_parameters()
    ]
    return type(model).__name__, _transformers_config(model), parameters


def _shape(parameter: Any) -> Sequence[int]:
    # Under ZeRO-3 a parameter is empty, and its shape is kept beside it.
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
    """The name of a config, and its text unless it is a file."""
    if isinstance(config, Mapping):
        return "config", json.dumps(config, indent=2, ensure_ascii=False)
    return os.fspath(config), None
