"""Common methods of all answers.

Bytes are integers. ``to_dict()`` returns the JSON that the command prints with ``--json``. ``str()`` returns the text
that the command prints. A notebook shows tables and charts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, TypeVar

from ._native import Answer
from ._shape import shaped

R = TypeVar("R", bound="Result")


@dataclass(frozen=True)
class Result:
    """Base class of all answers."""

    _answer: Answer = field(repr=False, compare=False)
    _lang: Optional[str] = field(repr=False, compare=False)

    @classmethod
    def _of(cls: type[R], answer: Answer, lang: Optional[str]) -> R:
        return shaped(cls, answer.json(lang), _answer=answer, _lang=lang)

    def to_dict(self) -> Dict[str, Any]:
        """Return the answer as a dictionary, the same as ``--json``."""
        data: Dict[str, Any] = self._answer.json(self._lang)
        return data

    def __str__(self) -> str:
        return self._answer.text(self._lang)

    def _repr_html_(self) -> str:
        return self._answer.html(self._lang)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, str]:
        return {"text/plain": str(self), "text/html": self._repr_html_()}


@dataclass(frozen=True)
class MemoryResult(Result):
    """Base class of memory predictions."""

    @property
    def fits(self) -> Optional[bool]:
        """Whether the upper bound fits on the GPU and the host; ``None`` if neither capacity is known."""
        answer = self.to_dict()
        verdicts = [answer[place]["verdict"] for place in ("device", "host")]
        known = [verdict for verdict in verdicts if verdict is not None]
        return all(verdict in ("fits", "low_headroom") for verdict in known) if known else None


@dataclass(frozen=True)
class CheckResult(Result):
    """Base class of checked configs."""

    @property
    def accepted(self) -> bool:
        """Whether DeepSpeed loads the config and no finding stops the run."""
        return bool(self.to_dict()["verdict"] == "accept")


@dataclass(frozen=True)
class Explanation(Result):
    """Base class of explanations; ``kind`` identifies the subclass."""

    kind: str
