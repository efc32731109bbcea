"""Native module: plain values as arguments; answers as JSON, text and HTML."""

from typing import Any, Mapping, Optional, Sequence, Union

_Config = tuple[str, Optional[str]]
_Live = tuple[str, Optional[str], Sequence[tuple[str, Sequence[int], str, bool]]]
_Job = tuple[str, Optional[int], Optional[str]]
_Model = Union[str, _Live, _Job]

class ZeropilotError(ValueError):
    """An error that prevents an answer; its text gives the problem, the reason and the fix."""

class Answer:
    def json(self, lang: Optional[str] = None) -> Any: ...
    def text(self, lang: Optional[str] = None) -> str: ...
    def html(self, lang: Optional[str] = None) -> str: ...

def version() -> str: ...
def memory(
    model: _Model, request: Mapping[str, Any], config: Optional[_Config], lang: Optional[str]
) -> Answer: ...
def diagnose(text: str, lang: Optional[str]) -> Answer: ...
def compare(model: _Model, request: Mapping[str, Any], lang: Optional[str]) -> Answer: ...
def plan(model: _Model, request: Mapping[str, Any], lang: Optional[str]) -> Answer: ...
def simulate(
    model: _Model,
    request: Mapping[str, Any],
    config: Optional[_Config],
    bill: Optional[Mapping[str, Any]],
    lang: Optional[str],
) -> Answer: ...
def create(
    wishes: Mapping[str, Any],
    model: Optional[_Model],
    tiers: bool,
    deepspeed_version: Optional[str],
    lang: Optional[str],
) -> Answer: ...
def check(
    config: _Config, judging: Mapping[str, Any], deepspeed_version: Optional[str], lang: Optional[str]
) -> Answer: ...
def resolve(
    config: _Config, judging: Mapping[str, Any], deepspeed_version: Optional[str], lang: Optional[str]
) -> Answer: ...
def explain(
    topic: Optional[_Config],
    judging: Mapping[str, Any],
    deepspeed_version: Optional[str],
    lang: Optional[str],
) -> Answer: ...
def diff(
    left: _Config,
    right: _Config,
    judging: Mapping[str, Any],
    deepspeed_version: Optional[str],
    lang: Optional[str],
) -> Answer: ...
