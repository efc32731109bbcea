"""Plan, predict, check and explain DeepSpeed ZeRO training before you use a GPU.

    >>> from zeropilot import ZeroConfig, build_config, save_config
    >>> cfg = ZeroConfig(micro_batch_size=2, gradient_accumulation=32, offload=True)
    >>> save_config(build_config(cfg), "ds_zero3.json")

``memory``, ``plan``, ``simulate``, ``check``, ``explain``, ``diagnose`` and ``resolve`` give the same answers as the
command ``zeropilot``, with the same fields. Each name is imported when it is first used.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._config import ZeroConfig, build_config, create, save_config
    from ._native import ZeropilotError
    from ._answers import (
        Check,
        Comparison,
        Concept,
        Created,
        Difference,
        ExplainedFile,
        Index,
        Key,
        LogDiagnosis,
        Memory,
        Names,
        Plan,
        Resolved,
        Simulation,
    )
    from ._inputs import Job
    from ._preemption import Preemption
    from ._result import Explanation
    from ._verbs import check, compare, diagnose, diff, explain, memory, plan, resolve, simulate

    __version__: str

__all__ = [
    "Check",
    "Comparison",
    "Concept",
    "Created",
    "Difference",
    "ExplainedFile",
    "Explanation",
    "Index",
    "Job",
    "Key",
    "LogDiagnosis",
    "Memory",
    "Names",
    "Plan",
    "Preemption",
    "Resolved",
    "Simulation",
    "ZeroConfig",
    "ZeropilotError",
    "__version__",
    "build_config",
    "check",
    "compare",
    "create",
    "diagnose",
    "diff",
    "explain",
    "memory",
    "plan",
    "resolve",
    "save_config",
    "simulate",
]

_HOMES = {
    "_config": ("ZeroConfig", "build_config", "create", "save_config"),
    "_inputs": ("Job",),
    "_native": ("ZeropilotError",),
    "_preemption": ("Preemption",),
    "_result": ("Explanation",),
    "_verbs": ("check", "compare", "diagnose", "diff", "explain", "memory", "plan", "resolve", "simulate"),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name == "__version__":
        value: object = import_module("._native", __name__).version()
    else:
        homes = (home for home, names in _HOMES.items() if name in names)
        value = getattr(import_module("." + next(homes, "_answers"), __name__), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted(__all__)
