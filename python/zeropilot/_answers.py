"""Answers as JSON has them.

Generated from the program's types: ``ZEROPILOT_UPDATE_DOCS=1 cargo test -p zeropilot --test docs``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Literal, Optional, Tuple

from ._result import CheckResult, Explanation, MemoryResult, Result


@dataclass(frozen=True)
class Check(CheckResult):
    """Whether DeepSpeed accepts a config, and everything found in it."""

    file: str
    verdict: RunVerdict
    resolved: Optional[ResolvedBatch]
    diagnostics: Tuple[Finding, ...]
    deepspeed_version: str
    front_end: FrontEndName
    world_size: int
    world_size_source: str
    pending: Tuple[Pending, ...]
    fixed: Optional[Tuple[Fixed, ...]] = None
    in_baseline: Optional[int] = None

RunVerdict = Literal["accept", "fail", "reject"]


@dataclass(frozen=True)
class ResolvedBatch:
    """The batch and the ZeRO section after loading."""

    train_batch_size: Optional[int]
    train_micro_batch_size_per_gpu: Optional[int]
    gradient_accumulation_steps: Optional[int]
    zero_optimization: Dict[str, Any]


@dataclass(frozen=True)
class Finding:
    """A finding with its reason and its remedy."""

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
class Span:
    """A place in a text: bytes, and lines and columns from 1. The end is exclusive."""

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
class Fix:
    """How a finding can be fixed."""

    title: str
    safety: str
    edits: Tuple[Edit, ...]


@dataclass(frozen=True)
class Edit:
    """A replacement of bytes."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Fixed:
    """A finding that a fix removed; its place refers to the text before the fix."""

    code: str
    message: str
    path: str
    title: str
    safety: str


@dataclass(frozen=True)
class FrontEndName:
    """What reads the config."""

    name: str
    guessed: bool


@dataclass(frozen=True)
class Pending:
    """A key that gets its value only when the script runs."""

    path: str
    filled_from: str


@dataclass(frozen=True)
class Resolved(Result):
    """A config after DeepSpeed has loaded it, without values that only the script sets."""

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
class Memory(MemoryResult):
    """How much memory a job needs."""

    shape: int
    model: str
    engine: str
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
    task: str
    parameters: Parameters
    models: Tuple[OtherModel, ...]
    critic: Optional[TrainedBeside]
    rollout: Optional[Rollout]
    images: Optional[ImagesSeen]
    activations: Activations
    tensors: Tensors
    device: DeviceMemory
    host: HostMemory
    savings: Tuple[Saving, ...]
    provenance: Provenance


@dataclass(frozen=True)
class Parameters:
    """Parameters of the model, and of each of its parts."""

    total: int
    trainable: int
    parts: Tuple[PartSize, ...]
    quantized: Optional[QuantizedSize]


@dataclass(frozen=True)
class PartSize:
    """Parameters of a part: ``vision``, ``audio``, ``projector`` or ``language``."""

    part: str
    total: int
    trainable: int


@dataclass(frozen=True)
class QuantizedSize:
    """Parameters of a quantized base model, and the bytes of all of them with their scales."""

    format: str
    total: int
    bytes: int


@dataclass(frozen=True)
class OtherModel:
    """A frozen model: ``reference``, ``teacher`` or ``reward``, with the bytes of its weights between phases."""

    role: str
    parameters: int
    device: int
    host: int


@dataclass(frozen=True)
class TrainedBeside:
    """The value model of PPO, which is trained in the same engine as the policy."""

    parameters: int


@dataclass(frozen=True)
class Rollout:
    """A vLLM engine on the training GPUs: bytes of each GPU during generation and during training, and the parts of its share. From the source code of vLLM, not measured."""

    generating: int
    training: Estimate
    weights: int
    cache: int
    cached_tokens: Optional[int]
    sleeps: bool


@dataclass(frozen=True)
class Estimate:
    """Bytes with their bounds."""

    low: int
    expected: int
    high: int


@dataclass(frozen=True)
class ImagesSeen:
    """The images of a sequence, and their number of tokens."""

    per_sequence: int
    width: int
    height: int
    tokens: int


@dataclass(frozen=True)
class Activations:
    """Source of the activations: the model's ``own`` program, or a ``stand_in``."""

    program: str
    of: Optional[str]
    error: Optional[ActivationError]


@dataclass(frozen=True)
class ActivationError:
    """Error of a stand-in's activations for recorded models of its class: 0.1 means 10% too high."""

    low: float
    high: float


@dataclass(frozen=True)
class Tensors:
    """The exact tensors of the rank."""

    after_init: State
    after_backward: State
    after_step: State
    peak: Peaks


@dataclass(frozen=True)
class State:
    """Tensors between phases, by place and category."""

    device: Dict[str, int]
    pinned: Dict[str, int]
    host: Dict[str, int]
    total: int
    misc: int


@dataclass(frozen=True)
class Peaks:
    """The peak of each phase."""

    init: int
    forward: int
    backward: int
    step: int


@dataclass(frozen=True)
class DeviceMemory:
    """Memory that a GPU needs."""

    low: int
    expected: int
    high: int
    allocated: Estimate
    reserved: Estimate
    calibration: Calibration
    capacity: Optional[int]
    verdict: Optional[Verdict]
    at_peak: Dict[str, int]
    terms: Tuple[MemoryTerm, ...]
    peak: DevicePeak


@dataclass(frozen=True)
class Calibration:
    """Published runs that determine the bounds ``low`` and ``high``, and how many of them are inside and below."""

    runs: int
    sources: int
    inside: int
    below: int
    own_runs: Optional[OwnBounds]


@dataclass(frozen=True)
class OwnBounds:
    """The user's own runs on this device, one per job. If ``decide`` is true, the bounds come from these runs alone; otherwise, the bounds are wide enough to include them."""

    runs: int
    decide: bool

Verdict = Literal["fits", "low_headroom", "may_not_fit", "does_not_fit"]


@dataclass(frozen=True)
class MemoryTerm:
    """GPU memory outside tensors."""

    term: str
    bytes: Estimate


@dataclass(frozen=True)
class DevicePeak:
    """When GPU memory peaks."""

    phase: str
    near: Optional[str]
    init: int
    forward: int
    backward: int
    step: int
    others: Dict[str, int]


@dataclass(frozen=True)
class HostMemory:
    """Memory that a host needs for all its processes."""

    per_process: Estimate
    low: int
    expected: int
    high: int
    processes: int
    capacity: Optional[int]
    verdict: Optional[Verdict]
    disk: int


@dataclass(frozen=True)
class Saving:
    """A change, and the bytes it saves on the GPU."""

    change: str
    saved: int


@dataclass(frozen=True)
class Provenance:
    """Values and assumptions behind an answer."""

    framework: Optional[str]
    values: Tuple[StatedValue, ...]
    unknown: Tuple[str, ...]
    not_modelled: Tuple[NotModelled, ...]
    notes: Tuple[str, ...]


@dataclass(frozen=True)
class StatedValue:
    """A value that an answer uses."""

    name: str
    value: Any
    origin: Origin


@dataclass(frozen=True)
class Origin:
    """Where a value comes from: an ``option``, a ``file`` with its line, a framework's ``default``, what is ``installed``, or ``assumed``."""

    kind: str
    file: Optional[str] = None
    line: Optional[int] = None
    of: Optional[str] = None


@dataclass(frozen=True)
class NotModelled:
    """A setting of the job that zeropilot does not model; the run needs ``less``, ``more`` or ``less_or_more``."""

    what: str
    written: str
    run_needs: str
    origin: Origin


@dataclass(frozen=True)
class Comparison(Result):
    """All stages and offloads side by side."""

    capacity: Optional[int]
    strategies: Tuple[ComparedStrategy, ...]


@dataclass(frozen=True)
class ComparedStrategy:
    """A stage with its offload and the memory that it needs."""

    stage: int
    offload_optimizer: bool
    offload_param: bool
    device: ComparedDevice
    host: Estimate
    verdict: Optional[Verdict]


@dataclass(frozen=True)
class ComparedDevice:
    """Memory that a strategy needs on a GPU, and its parts at the peak."""

    at_peak: Dict[str, int]
    low: int
    expected: int
    high: int
    verdict: Optional[Verdict]


@dataclass(frozen=True)
class Plan(Result):
    """The recommended strategy, alternatives that fit, strategies that do not fit, and the fallbacks if the run still runs out of memory."""

    shape: int
    model: str
    task: str
    gpus: str
    world_size: int
    capacity: int
    strategies: int
    predicted: int
    longest: Optional[LongestSequence]
    recommended: Optional[Recommended]
    cost_estimate: Optional[CostEstimate]
    by_gpu_count: Optional[Tuple[OnGpus, ...]]
    alternatives: Tuple[FittingStrategy, ...]
    rejected: Tuple[RejectedStrategy, ...]
    fallbacks: Tuple[FittingStrategy, ...]
    gpus_needed: Optional[int]
    host_ram_needed: Optional[int]
    limits: Tuple[str, ...]
    current: Optional[CurrentJob]
    provenance: Provenance


@dataclass(frozen=True)
class LongestSequence:
    """The longest sequence, if requested: ``seq_len`` tokens fit even at their upper bound, ``expected`` tokens are expected to fit."""

    seq_len: int
    expected: int
    by_changes: Tuple[LongestWith, ...]


@dataclass(frozen=True)
class LongestWith:
    """The longest sequence with some changes to the script; ``limit`` is ``memory``, ``kernels`` or ``asked``."""

    seq_len: int
    fused_loss: bool
    sequence_parallel: int
    activation_offload: bool
    tiled_mlp: bool
    limit: str


@dataclass(frozen=True)
class Recommended:
    """The strategy to run, with commands that start it, by launcher."""

    strategy: Strategy
    config: Dict[str, Any]
    memory: PlannedMemory
    step_seconds: Optional[Range]
    launch: Dict[str, str]


@dataclass(frozen=True)
class Strategy:
    """Stage, offload (``cpu`` or ``nvme``) and batch. ``sequence_parallel`` GPUs share each sequence."""

    stage: int
    offload_optimizer: Offload
    offload_param: Offload
    micro_batch: int
    gradient_accumulation_steps: int
    gradient_checkpointing: bool
    fused_loss: bool
    sequence_parallel: int
    activation_offload: bool
    tiled_mlp: bool
    hpz: int

Offload = Literal["none", "cpu", "nvme"]


@dataclass(frozen=True)
class PlannedMemory:
    """Memory that a strategy needs on a GPU and on a host."""

    device: Estimate
    host: Estimate


@dataclass(frozen=True)
class Range:
    """Seconds, hours or money with their bounds."""

    low: float
    expected: float
    high: float


@dataclass(frozen=True)
class CostEstimate:
    """Cost of the whole training: GPU hours, and money if a price was given."""

    tokens: float
    gpu_hours: Optional[float]
    cost: Optional[float]


@dataclass(frozen=True)
class OnGpus:
    """The best strategy on some of the GPUs, and its cost; no strategy if none fits."""

    nodes: int
    gpus_per_node: int
    strategy: Optional[Strategy]
    cost_estimate: Optional[CostEstimate]


@dataclass(frozen=True)
class FittingStrategy:
    """A strategy that fits, with its DeepSpeed config; the time of a step only if the speed of the GPUs is known."""

    strategy: Strategy
    config: Dict[str, Any]
    memory: PlannedMemory
    step_seconds: Optional[Range]


@dataclass(frozen=True)
class RejectedStrategy:
    """A strategy whose upper bound does not fit even with the smallest settings, and the bytes that are missing."""

    strategy: Strategy
    over_by: int
    where: str
    device: Estimate
    verdict: Verdict
    fullest: str
    other_models: int
    rollout_engine: int


@dataclass(frozen=True)
class CurrentJob:
    """The job as it is written."""

    stage: int
    micro_batch: int
    gradient_accumulation_steps: int
    device: int
    verdict: Optional[Verdict]
    step_seconds: Range


@dataclass(frozen=True)
class Simulation(Result):
    """Time of a step, its waits and its communication volume."""

    shape: int
    model: str
    engine: str
    stage: int
    micro_batch: int
    gradient_accumulation_steps: int
    sequence_length: int
    gradient_checkpointing: bool
    world_size: int
    nodes: int
    gpus_per_node: int
    network: Optional[NodeNetwork]
    step: StepSeconds
    verdict: Optional[Verdict]
    process_bytes: Optional[int]
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    tflops_per_gpu: float
    mfu: float
    hfu: float
    busy: Dict[str, float]
    waits: Dict[str, float]
    communication: Communication
    cost_estimate: Optional[CostRange]
    scaling: Tuple[Scaling, ...]
    provenance: Provenance


@dataclass(frozen=True)
class NodeNetwork:
    """The network between the nodes; ``stated`` if it was given, not assumed."""

    name: str
    gb_s: float
    stated: bool


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of a step with their bounds, and the expected seconds of each phase."""

    low: float
    expected: float
    high: float
    forward: float
    backward: float
    optimizer: float
    own_runs: Optional[OwnBounds]


@dataclass(frozen=True)
class Communication:
    """Communication volume of a step."""

    calls: Tuple[CallTotal, ...]
    sent: int
    to_device: int
    to_host: int


@dataclass(frozen=True)
class CallTotal:
    """Calls of one kind among this many ranks."""

    kind: str
    ranks: int
    calls: int
    bytes: int


@dataclass(frozen=True)
class CostRange:
    """Cost of the whole training, with bounds: GPU hours, and money if a price was given."""

    tokens: float
    gpu_hours: Range
    cost: Optional[Range]


@dataclass(frozen=True)
class Scaling:
    """The same job on another number of GPUs."""

    gpus: int
    gradient_accumulation_steps: int
    step: float
    tokens_per_s: float
    tokens_per_s_per_gpu: float
    mfu: float
    efficiency: Optional[float]


@dataclass(frozen=True)
class Created(Result):
    """A DeepSpeed config with its explanations."""

    path: Optional[str]
    tier: Optional[str]
    target: str
    front_end: str
    stage: int
    precision: str
    batch: Batch
    arguments: Dict[str, Any]
    sized: Tuple[SizedKey, ...]
    config: Dict[str, Any]


@dataclass(frozen=True)
class Batch:
    """Micro-batch size × gradient accumulation steps × ranks."""

    micro_batch: int
    gradient_accumulation_steps: int
    world_size: Optional[int]
    global_batch: Optional[int]


@dataclass(frozen=True)
class SizedKey:
    """A key that was sized for the model."""

    key: str
    elements: int


@dataclass(frozen=True)
class Index(Explanation):
    """Keys and concepts that ``explain`` describes."""

    concepts: Tuple[ConceptName, ...]
    keys: Tuple[str, ...]


@dataclass(frozen=True)
class ConceptName:
    """A concept that ``explain`` describes."""

    name: str
    title: str


@dataclass(frozen=True)
class Key(Explanation):
    """A key with its effect, its cost and common mistakes; ``within`` if the text describes the section that contains the key."""

    path: str
    within: Optional[str]
    what: Optional[str]
    unit: Optional[str]
    is_read: Optional[bool]
    needs: Tuple[Need, ...]
    unmeasured: Tuple[str, ...]
    memory: Optional[str]
    speed: Optional[str]
    mistake: Optional[str]
    source: Tuple[str, ...]
    versions: Tuple[InVersion, ...]


@dataclass(frozen=True)
class Need:
    """A key and the values that give the described key an effect."""

    key: str
    values: Tuple[Any, ...]


@dataclass(frozen=True)
class InVersion:
    """A key in one DeepSpeed version."""

    version: str
    status: str
    default: Any
    replaced_by: Optional[str]


@dataclass(frozen=True)
class Names(Explanation):
    """A name that several keys share."""

    keys: Tuple[str, ...]


@dataclass(frozen=True)
class Concept(Explanation):
    """A concept."""

    name: str
    title: str
    text: str
    keys: Tuple[str, ...]


@dataclass(frozen=True)
class ExplainedFile(Explanation):
    """A whole config, key by key; ``findings`` are the findings that do not belong to a key."""

    file: str
    verdict: RunVerdict
    deepspeed_version: str
    front_end: str
    world_size: int
    keys: Tuple[FileKey, ...]
    findings: Tuple[FileFinding, ...]
    job: Optional[Provenance] = None


@dataclass(frozen=True)
class FileKey:
    """A key as a config has it."""

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
class FileFinding:
    """A finding in short."""

    code: str
    severity: str
    message: str
    help: str


@dataclass(frozen=True)
class Difference(Explanation):
    """Differences between two configs."""

    files: Tuple[str, ...]
    changes: Tuple[Change, ...]


@dataclass(frozen=True)
class Change:
    """A key that differs."""

    path: str
    left: KeySide
    right: KeySide
    what: Optional[str]
    memory: Optional[str]
    speed: Optional[str]


@dataclass(frozen=True)
class KeySide:
    """A key in one of two configs."""

    status: str
    value: Any


@dataclass(frozen=True)
class Costs(Explanation):
    """Cost of configs in a step."""

    model: str
    files: Tuple[FileCost, ...]


@dataclass(frozen=True)
class FileCost:
    """Bytes on the GPU with the highest use, on a host, sent by each GPU, and between GPU and host; seconds if the speed of the GPUs is known."""

    file: str
    device: int
    host: int
    sent: int
    to_device: int
    to_host: int
    seconds: Optional[float]
    sequences: int


@dataclass(frozen=True)
class LogDiagnosis(Result):
    """Why a run ran out of memory; ``cause`` is null if the log has no out-of-memory message."""

    shape: int
    log: str
    cause: Optional[OomCause]
    certainty: Optional[OomCertainty]
    memory: Optional[OomMemory]
    phase: Optional[OomPhase]
    object: Optional[OomObject]
    summary: str
    rank: Optional[int]
    ranks: Tuple[int, ...]
    messages: int
    numbers: Optional[ShortageNumbers]
    evidence: Tuple[EvidenceLine, ...]
    steps: Tuple[ChangeFirst, ...]
    gaps: Tuple[UnknownFact, ...]
    prediction: Optional[ShortagePrediction]

OomCause = Literal["model_states", "activations", "logits", "fragmentation", "other_process", "evaluation", "saving", "generation", "large_request", "host_memory", "library_memory", "unknown"]

OomCertainty = Literal["shown", "likely", "unknown"]

OomMemory = Literal["device", "host"]

OomPhase = Literal["forward", "backward", "step", "loading", "initialize", "evaluation", "generation", "saving"]

OomObject = Literal["logits", "attention", "gathered_weights"]


@dataclass(frozen=True)
class ShortageNumbers:
    """The numbers of the message, in bytes. ``cached``, ``process`` and ``others`` may follow from the others."""

    device: Optional[str]
    requested: Optional[int]
    free: Optional[int]
    capacity: Optional[int]
    allocated: Optional[int]
    cached: Optional[int]
    process: Optional[int]
    others: Optional[int]


@dataclass(frozen=True)
class EvidenceLine:
    """A line of the log."""

    line: int
    text: str


@dataclass(frozen=True)
class ChangeFirst:
    """A change, with its key, argument, variable or command."""

    setting: str
    text: str


@dataclass(frozen=True)
class UnknownFact:
    """Something that the log does not show."""

    name: OomGap
    text: str

OomGap = Literal["traceback", "numbers", "processes", "killer"]


@dataclass(frozen=True)
class ShortagePrediction:
    """zeropilot's prediction for the same job. ``measured`` is the sum of live tensors and the request."""

    phase: str
    tensors: int
    device: int
    measured: Optional[int]
    larger: Optional[str]
    terms: Tuple[PredictedPart, ...]


@dataclass(frozen=True)
class PredictedPart:
    """A part of the predicted tensors."""

    part: str
    bytes: int


KINDS: Dict[str, type[Explanation]] = {
    "index": Index,
    "key": Key,
    "names": Names,
    "concept": Concept,
    "file": ExplainedFile,
    "difference": Difference,
    "cost": Costs,
}
