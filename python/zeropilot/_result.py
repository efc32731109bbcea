"""What all answers can do.

Bytes are whole numbers. ``to_dict()`` is the JSON that the command prints with ``--json``, ``str()`` what it prints for
people, and a notebook shows tables and pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, TypeVar

from ._native import Answer
from ._shape import shaped

R = TypeVar("R", bound="Result")


@dataclass(frozen=True)
class Result:
    """What all answers can do."""

    _answer: Answer = field(repr=False, compare=False)
    _lang: Optional[str] = field(repr=False, compare=False)

    @classmethod
    def _of(cls: type[R], answer: Answer, lang: Optional[str]) -> R:
        return shaped(cls, answer.json(lang), _answer=answer, _lang=lang)

    def to_dict(self) -> Dict[str, Any]:
        """The answer as JSON has it."""
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
    """What an answer about memory can do."""

    @property
    def fits(self) -> Optional[bool]:
        """Whether GPU and host hold even the upper bound; ``None`` if the memory of neither is known."""
        answer = self.to_dict()
        verdicts = [answer[place]["verdict"] for place in ("device", "host")]
        known = [verdict for verdict in verdicts if verdict is not None]
        return all(verdict in ("fits", "low_headroom") for verdict in known) if known else None


@dataclass(frozen=True)
class CheckResult(Result):
    """What a checked config can do."""

    @property
    def accepted(self) -> bool:
        """Whether the config loads and no finding ends the run."""
        return bool(self.to_dict()["verdict"] == "accept")


@dataclass(frozen=True)
class Explanation(Result):
    """Something explained; ``kind`` says which class it is."""

    kind: str
