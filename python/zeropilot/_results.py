"""Answers. Each is a frozen dataclass of the shape that the command prints with ``--json``.

Bytes are whole numbers. ``to_dict()`` is that JSON itself, ``str()`` what the command prints for people, and a notebook
shows tables and pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, TypeVar

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
class Estimate:
    """Bytes with their bounds."""

    low: int
    expected: int
    high: int


@dataclass(frozen=True)
class Term:
    """Device memory that is no tensor."""

    term: str
    bytes: Estimate


@dataclass(frozen=True)
class Activations:
    """Whose program the activations come from: the model's ``own``, or a ``stand_in``."""

    program: str
    of: Optional[str] = None


@dataclass(frozen=True)
class State:
    """Tensors at a moment of rest, by place and category."""

    device: Dict[str, int]
    pinned: Dict[str, int]
    host: Dict[str, int]
    total: int
    misc: int


@dataclass(frozen=True)
class Peaks:
    """The most in each phase."""

    init: int
    forward: int
    backward: int
    step: int


@dataclass(frozen=True)
class Tensors:
    """Exactly the tensors of the rank."""

    after_init: State
    after_backward: State
    after_step: State
    peak: Peaks


@dataclass(frozen=True)
class DevicePeak:
    """When the GPU is fullest."""

    phase: str
    near: Optional[str]
    init: int
    forward: int
    backward: int
    step: int


@dataclass(frozen=True)
class DeviceMemory:
    """What a GPU needs; ``verdict`` is ``fits``, ``tight``, ``doubtful`` or ``does_not_fit``."""

    low: int
    expected: int
    high: int
    capacity: Optional[int]
    verdict: Optional[str]
    at_peak: Dict[str, int]
    terms: Tuple[Term, ...]
    peak: DevicePeak


@dataclass(frozen=True)
class HostMemory:
    """What a host needs for all of its processes."""

    per_process: Estimate
    low: int
    expected: int
    high: int
    processes: int
    capacity: Optional[int]
    verdict: Optional[str]
    disk: int


@dataclass(frozen=True)
class Relief:
    """A change, and the bytes it saves on the GPU."""

    change: str
    saved: int


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: an ``option``, a ``file`` with its line, a framework's ``default``, or ``assumed``."""

    kind: str
    file: Optional[str] = None
    line: Optional[int] = None
    of: Optional[str] = None


@dataclass(frozen=True)
class StatedValue:
    """A value that an answer rests on."""

    name: str
    value: Any
    origin: Origin


@dataclass(frozen=True)
class NotModelled:
    """Something the job says that no prediction follows; the run needs ``less``, ``more`` or ``less_or_more``."""

    what: str
    written: str
    run_needs: str
    origin: Origin


@dataclass(frozen=True)
class Provenance:
    """What an answer rests on."""

    framework: Optional[str]
    values: Tuple[StatedValue, ...]
    unknown: Tuple[str, ...]
    not_modelled: Tuple[NotModelled, ...]
    notes: Tuple[str, ...]


@dataclass(frozen=True)
class Memory(Result):
    """How much memory a job needs."""

    shape: int
    model: str
    stage: int
    micro_batch: int
    sequence_length: int
    precision: str
    precision_assumed: bool
    gradient_checkpointing: bool
    world_size: int
    nodes: int
    gpus_per_node: int
    rank: int
    activations: Activations
    tensors: Tensors
    device: DeviceMemory
    host: HostMemory
    reliefs: Tuple[Relief, ...]
    provenance: Provenance

    @property
    def fits(self) -> Optional[bool]:
        """Whether GPU and host hold even the upper bound; ``None`` if the memory of neither is known."""
        verdicts = [verdict for verdict in (self.device.verdict, self.host.verdict) if verdict is not None]
        return all(verdict in ("fits", "tight") for verdict in verdicts) if verdicts else None


@dataclass(frozen=True)
class ComparedDevice:
    """What a GPU needs for one way to train, and what fills it at its highest point."""

    low: int
    expected: int
    high: int
    at_peak: Dict[str, int]
    verdict: Optional[str] = None


@dataclass(frozen=True)
class ComparedWay:
    """A stage and what it offloads, with what it needs."""

    stage: int
    offload_optimizer: bool
    offload_param: bool
    device: ComparedDevice
    host: Estimate


@dataclass(frozen=True)
class Comparison(Result):
    """All stages and offloads side by side."""

    capacity: Optional[int]
    ways: Tuple[ComparedWay, ...]


@dataclass(frozen=True)
class Way:
    """One way to train; what is offloaded is on ``none``, ``cpu`` or ``nvme``."""

    stage: int
    offload_optimizer: str
    offload_param: str
    micro_batch: int
    gradient_accumulation_steps: int
    gradient_checkpointing: bool
    fused_loss: bool
    hpz: int


@dataclass(frozen=True)
class PlannedMemory:
    """What a way needs on a GPU and on a host."""

    device: Estimate
    host: Estimate


@dataclass(frozen=True)
class Seconds:
    """How long a step takes: at best, as expected, at worst."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True)
class Option:
    """A way that fits, with its DeepSpeed config; the time of a step only where the speed of the GPUs is known."""

    stage: int
    way: Way
    config: Dict[str, Any]
    memory: PlannedMemory
    step_seconds: Optional[Seconds] = None
    launch: Optional[Dict[str, str]] = None


@dataclass(frozen=True)
class Rejected:
    """A way that does not fit even at its smallest, and by how many bytes."""

    way: Way
    over_by: int
    where: str
    device: Estimate


@dataclass(frozen=True)
class Bill:
    """What it takes to finish: hours of GPUs, and money where a price was given."""

    tokens: float
    gpu_hours: Optional[float]
    cost: Optional[float]


@dataclass(frozen=True)
class Offer:
    """The best on some of the GPUs, and what it costs; nothing fits without a way."""

    nodes: int
    gpus_per_node: int
    way: Optional[Way]
    bill: Optional[Bill]


@dataclass(frozen=True)
class CurrentJob:
    """The job as it is written."""

    stage: int
    micro_batch: int
    gradient_accumulation_steps: int
    device: int
    verdict: Optional[str]
    step_seconds: Seconds


@dataclass(frozen=True)
class Plan(Result):
    """What to run: the choice, what else fits, what does not, and the ladder to fall down."""

    shape: int
    model: str
    gpus: str
    world_size: int
    capacity: int
    ways: int
    asked: int
    choice: Optional[Option]
    bill: Optional[Bill]
    offers: Optional[Tuple[Offer, ...]]
    alternatives: Tuple[Option, ...]
    rejected: Tuple[Rejected, ...]
    ladder: Tuple[Option, ...]
    gpus_needed: Optional[int]
    host_ram_needed: Optional[int]
    limits: Tuple[str, ...]
    current: Optional[CurrentJob]
    provenance: Provenance


@dataclass(frozen=True)
class Batch:
    """Micro batch × accumulation × ranks."""

    micro: int
    accumulation: int
    world_size: Optional[int]
    global_batch: Optional[int] = field(default=None, metadata={"key": "global"})


@dataclass(frozen=True)
class SizedKey:
    """A key that was sized for the model."""

    key: str
    elements: int


@dataclass(frozen=True)
class Created(Result):
    """A DeepSpeed config with what must be said beside it."""

    tier: Optional[str]
    front_end: str
    stage: int
    precision: str
    batch: Batch
    arguments: Dict[str, Any]
    sized: Tuple[SizedKey, ...]
    config: Dict[str, Any]


@dataclass(frozen=True)
class Span:
    """A place in a text: bytes, and lines and columns from 1."""

    start: int
    end: int
    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True)
class Related:
    """Another place that belongs to a finding."""

    span: Span
    message: str


@dataclass(frozen=True)
class Edit:
    """A replacement of bytes."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Fix:
    """How a finding can be put right."""

    title: str
    safety: str
    edits: Tuple[Edit, ...]


@dataclass(frozen=True)
class Finding:
    """Something wrong, with its reason and its remedy."""

    code: str
    name: str
    severity: str
    message: str
    why: str
    help: str
    path: str
    span: Span
    related: Tuple[Related, ...]
    fix: Optional[Fix]


@dataclass(frozen=True)
class FrontEnd:
    """Who reads the config."""

    name: str
    guessed: bool


@dataclass(frozen=True)
class Pending:
    """A key that is filled only when the script runs."""

    path: str
    filled_from: str


@dataclass(frozen=True)
class Check(Result):
    """Whether the engine takes a config, and everything found in it."""

    file: str
    verdict: str
    resolved: Optional[Dict[str, Any]]
    diagnostics: Tuple[Finding, ...]
    deepspeed_version: str
    front_end: FrontEnd
    world_size: int
    world_size_source: str
    pending: Tuple[Pending, ...]

    @property
    def accepted(self) -> bool:
        """Whether the run gets past loading it."""
        return self.verdict == "accept"


@dataclass(frozen=True)
class Resolved(Result):
    """A config as the engine holds it after loading; what only the script decides is ``None``."""

    shape: int
    deepspeed_version: str
    front_end: str
    world_size: int
    world_size_source: str
    stage: int
    precision: str
    train_batch_size: Optional[int]
    train_micro_batch_size_per_gpu: Optional[int]
    gradient_accumulation_steps: Optional[int]
    gradient_clipping: Optional[float]
    zero_optimization: Dict[str, Any]
    pending: Tuple[Pending, ...]


@dataclass(frozen=True)
class Explanation(Result):
    """Something explained; ``kind`` says which of the classes below it is."""

    kind: str


@dataclass(frozen=True)
class ConceptName:
    """A concept that can be asked for."""

    name: str
    title: str


@dataclass(frozen=True)
class Index(Explanation):
    """What can be asked."""

    concepts: Tuple[ConceptName, ...]
    keys: Tuple[str, ...]


@dataclass(frozen=True)
class InVersion:
    """A key in one engine version."""

    version: str
    status: str
    default: Any
    replaced_by: Optional[str]


@dataclass(frozen=True)
class Key(Explanation):
    """A key: what it does, what it costs, what people get wrong."""

    path: str
    within: Optional[str]
    versions: Tuple[InVersion, ...]
    what: Optional[str] = None
    unit: Optional[str] = None
    is_read: Optional[bool] = None
    memory: Optional[str] = None
    speed: Optional[str] = None
    mistake: Optional[str] = None
    source: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Names(Explanation):
    """A name that several keys have."""

    keys: Tuple[str, ...]


@dataclass(frozen=True)
class Concept(Explanation):
    """A concept."""

    name: str
    title: str
    text: str
    keys: Tuple[str, ...]


@dataclass(frozen=True)
class FileFinding:
    """Something wrong, in short."""

    code: str
    severity: str
    message: str
    help: str


@dataclass(frozen=True)
class FileKey:
    """A key as it stands in a config."""

    path: str
    span: Span
    status: str
    written: str
    value: Any
    filled_from: Optional[str]
    what: Optional[str]
    memory: Optional[str]
    speed: Optional[str]
    findings: Tuple[FileFinding, ...]


@dataclass(frozen=True)
class ExplainedFile(Explanation):
    """A whole config, key by key."""

    file: str
    verdict: str
    deepspeed_version: str
    front_end: str
    world_size: int
    keys: Tuple[FileKey, ...]
    findings: Tuple[FileFinding, ...]


@dataclass(frozen=True)
class Side:
    """A key in one of two configs."""

    status: str
    value: Any


@dataclass(frozen=True)
class Change:
    """A key that differs."""

    path: str
    left: Side
    right: Side
    what: Optional[str]
    memory: Optional[str]
    speed: Optional[str]


@dataclass(frozen=True)
class Difference(Explanation):
    """What differs between two configs."""

    files: Tuple[str, ...]
    changes: Tuple[Change, ...]


KINDS: Dict[str, type[Explanation]] = {
    "index": Index,
    "key": Key,
    "names": Names,
    "concept": Concept,
    "file": ExplainedFile,
    "difference": Difference,
}
