"""Functions that give the same answers as the commands with the same names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _native
from ._inputs import Config, Model, config_argument, model_argument
from ._answers import KINDS, Check, Comparison, Difference, LogDiagnosis, Memory, Plan, Resolved, Simulation
from ._result import Explanation

if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class Script(TypedDict, total=False):
        """Arguments of the training script."""

        per_device_train_batch_size: int
        gradient_accumulation_steps: int
        learning_rate: float
        weight_decay: float
        adam_beta1: float
        adam_beta2: float
        adam_epsilon: float
        max_grad_norm: float
        warmup_steps: float
        max_steps: int
        bf16: bool
        fp16: bool
        mixed_precision: str
        auto_find_batch_size: bool
        optim: str
        lr_scheduler_type: str
        save_only_model: bool
        load_best_model_at_end: bool
        hidden_size: int


Size = Union[int, str]


def _given(**arguments: Any) -> Dict[str, Any]:
    return {name: value for name, value in arguments.items() if value is not None}


def _training(
    *,
    seq_len: Optional[Size],
    target_len: Optional[int],
    image: Optional[str],
    images_per_sample: Optional[int],
    max_pixels: Optional[int],
    freeze: Sequence[str],
    micro_batch: Optional[int],
    grad_accum: Optional[int],
    method: Optional[str],
    quantization: Optional[str],
    lora_rank: Optional[int],
    lora_targets: Sequence[str],
    grad_checkpointing: Optional[bool],
    attention: Optional[str],
    fused_loss: Union[bool, str, None],
    loss_shards: Optional[int],
    liger: Optional[bool],
    sequence_parallel: Optional[int],
    tiled_mlp: Optional[bool],
    activation_offload: Optional[bool],
    expandable_segments: Optional[bool],
    optimizer: Optional[str],
    load: Optional[str],
    deepspeed_version: Optional[str],
    transformers_version: Optional[str],
    trl_version: Optional[str],
) -> Dict[str, Any]:
    software = _given(
        deepspeed_version=deepspeed_version, transformers_version=transformers_version, trl_version=trl_version
    )
    return _given(
        seq_len=seq_len,
        target_len=target_len,
        image=image,
        images_per_sample=images_per_sample,
        max_pixels=max_pixels,
        freeze=list(freeze),
        micro_batch=micro_batch,
        grad_accum=grad_accum,
        method=method,
        quantization=quantization,
        lora_rank=lora_rank,
        lora_targets=list(lora_targets),
        grad_checkpointing=grad_checkpointing,
        attention=attention,
        fused_loss=fused_loss,
        loss_shards=loss_shards,
        liger=liger,
        sequence_parallel=sequence_parallel,
        tiled_mlp=tiled_mlp,
        activation_offload=activation_offload,
        expandable_segments=expandable_segments,
        optimizer=optimizer,
        load=load,
        software=software or None,
    )


def memory(
    model: Model,
    *,
    gpus: str,
    config: Optional[Config] = None,
    stage: Optional[int] = None,
    offload: Optional[str] = None,
    without_deepspeed: bool = False,
    precision: Optional[str] = None,
    host_ram: Optional[Size] = None,
    rank: Optional[int] = None,
    seq_len: Optional[Size] = None,
    target_len: Optional[int] = None,
    image: Optional[str] = None,
    images_per_sample: Optional[int] = None,
    max_pixels: Optional[int] = None,
    freeze: Sequence[str] = (),
    micro_batch: Optional[int] = None,
    grad_accum: Optional[int] = None,
    method: Optional[str] = None,
    quantization: Optional[str] = None,
    lora_rank: Optional[int] = None,
    lora_targets: Sequence[str] = (),
    grad_checkpointing: Optional[bool] = None,
    attention: Optional[str] = None,
    fused_loss: Union[bool, str, None] = None,
    loss_shards: Optional[int] = None,
    liger: Optional[bool] = None,
    sequence_parallel: Optional[int] = None,
    tiled_mlp: Optional[bool] = None,
    activation_offload: Optional[bool] = None,
    expandable_segments: Optional[bool] = None,
    optimizer: Optional[str] = None,
    load: Optional[str] = None,
    deepspeed_version: Optional[str] = None,
    transformers_version: Optional[str] = None,
    trl_version: Optional[str] = None,
    task: Optional[str] = None,
    teacher: Optional[str] = None,
    reward_model: Optional[str] = None,
    critic: Optional[str] = None,
    reference: Optional[str] = None,
    completion_len: Optional[Size] = None,
    rollout: Optional[str] = None,
    rollout_batch: Optional[int] = None,
    vllm_gpu_memory_utilization: Optional[float] = None,
    vllm_sleep: Optional[bool] = None,
    vllm_tensor_parallel_size: Optional[int] = None,
    trainer: Optional[str] = None,
    lang: Optional[str] = None,
) -> Memory:
    """Predict the memory that each GPU and each host needs, and its parts.

    ``model`` is a built-in name, a directory, a ``config.json``, a Hugging Face ID, or a ``torch.nn.Module``. From a
    module, zeropilot reads names, shapes, dtypes, ``requires_grad`` and the transformers config. ``config`` is a DeepSpeed
    config, as a file or a dictionary. If it is omitted, zeropilot builds one from ``stage`` (3), ``offload`` (``"none"``,
    ``"optimizer"``, ``"all"``) and ``precision`` (``"bf16"``). ``without_deepspeed`` predicts PyTorch without DeepSpeed,
    on one GPU or with DDP.

    Defaults: ``seq_len`` is 2048, ``method`` ``"full"``, ``lora_rank`` 16, ``attention`` ``"auto"`` and ``optimizer``
    ``"adamw"``. ``seq_len`` may be a string such as ``"128k"``. For a vision model, each sequence has
    ``images_per_sample`` (1) images of the size ``image`` (``"512x512"``, or ``"none"``). ``freeze`` lists parts that are
    not trained (``"vision"``, ``"audio"``, ``"projector"``, ``"language"``). ``quantization`` (``"nf4"``,
    ``"nf4-plain"``, ``"int8"``) is the format of the base model for ``method="qlora"``.

    ``fused_loss`` may be ``"trl"`` for the head of TRL's trainers. It may also be one of DeepSpeed's losses in
    ``loss_shards`` shards: ``"sequence-tiled"`` or ``"tiled-fused"``. ``deepspeed_version``, ``transformers_version`` and
    ``trl_version`` are the versions of the run. If they are omitted, zeropilot uses the newest measured versions.

    ``task`` is the training task (``"sft"``, ``"dpo"``, ``"kto"``, ``"orpo"``, ``"cpo"``, ``"reward"``, ``"distill"``,
    ``"gkd"``, ``"grpo"``, ``"rloo"``, ``"ppo"``). Its other models are ``teacher`` (in the form of ``model``),
    ``reward_model`` on the same GPUs, ``critic`` (the value model of PPO) and ``reference`` (``"copy"``,
    ``"adapters-off"``, ``"precomputed"``, ``"none"``). PPO scores ``rollout_batch`` completions at once. Completions have
    ``completion_len`` tokens, and ``rollout`` (``"generate"``, ``"vllm"``, ``"server"``, ``"none"``) generates them. vLLM
    on the same GPUs uses the fraction ``vllm_gpu_memory_utilization`` of each GPU. With ``vllm_sleep``, it releases this
    memory during training. ``trainer`` selects the library that computes the loss (``"trl"``, ``"swift"``,
    ``"llamafactory"``).
    """
    training = _training(
        seq_len=seq_len,
        target_len=target_len,
        image=image,
        images_per_sample=images_per_sample,
        max_pixels=max_pixels,
        freeze=freeze,
        micro_batch=micro_batch,
        grad_accum=grad_accum,
        method=method,
        quantization=quantization,
        lora_rank=lora_rank,
        lora_targets=lora_targets,
        grad_checkpointing=grad_checkpointing,
        attention=attention,
        fused_loss=fused_loss,
        loss_shards=loss_shards,
        liger=liger,
        sequence_parallel=sequence_parallel,
        tiled_mlp=tiled_mlp,
        activation_offload=activation_offload,
        expandable_segments=expandable_segments,
        optimizer=optimizer,
        load=load,
        deepspeed_version=deepspeed_version,
        transformers_version=transformers_version,
        trl_version=trl_version,
    )
    request = _given(
        machines=_given(gpus=gpus, host_ram=host_ram),
        stage=stage,
        offload=offload,
        without_deepspeed=without_deepspeed or None,
        precision=precision,
        rank=rank,
        training=training,
        task=_given(
            task=task,
            teacher=teacher,
            reward_model=reward_model,
            critic=critic,
            reference=reference,
            completion_len=completion_len,
            rollout=rollout,
            rollout_batch=rollout_batch,
            vllm_gpu_memory_utilization=vllm_gpu_memory_utilization,
            vllm_sleep=vllm_sleep,
            vllm_tensor_parallel_size=vllm_tensor_parallel_size,
            trainer=trainer,
        ),
    )
    written = None if config is None else config_argument(config)
    answer = _native.memory(model_argument(model), request, written, lang)
    return Memory._of(answer, lang)


def compare(
    model: Model,
    *,
    gpus: str,
    precision: Optional[str] = None,
    host_ram: Optional[Size] = None,
    rank: Optional[int] = None,
    seq_len: Optional[Size] = None,
    target_len: Optional[int] = None,
    image: Optional[str] = None,
    images_per_sample: Optional[int] = None,
    max_pixels: Optional[int] = None,
    freeze: Sequence[str] = (),
    micro_batch: Optional[int] = None,
    grad_accum: Optional[int] = None,
    method: Optional[str] = None,
    quantization: Optional[str] = None,
    lora_rank: Optional[int] = None,
    lora_targets: Sequence[str] = (),
    grad_checkpointing: Optional[bool] = None,
    attention: Optional[str] = None,
    fused_loss: Union[bool, str, None] = None,
    loss_shards: Optional[int] = None,
    liger: Optional[bool] = None,
    sequence_parallel: Optional[int] = None,
    tiled_mlp: Optional[bool] = None,
    activation_offload: Optional[bool] = None,
    expandable_segments: Optional[bool] = None,
    optimizer: Optional[str] = None,
    load: Optional[str] = None,
    deepspeed_version: Optional[str] = None,
    transformers_version: Optional[str] = None,
    trl_version: Optional[str] = None,
    task: Optional[str] = None,
    teacher: Optional[str] = None,
    reward_model: Optional[str] = None,
    critic: Optional[str] = None,
    reference: Optional[str] = None,
    completion_len: Optional[Size] = None,
    rollout: Optional[str] = None,
    rollout_batch: Optional[int] = None,
    vllm_gpu_memory_utilization: Optional[float] = None,
    vllm_sleep: Optional[bool] = None,
    vllm_tensor_parallel_size: Optional[int] = None,
    trainer: Optional[str] = None,
    lang: Optional[str] = None,
) -> Comparison:
    """Compare all stages and offload options side by side."""
    training = _training(
        seq_len=seq_len,
        target_len=target_len,
        image=image,
        images_per_sample=images_per_sample,
        max_pixels=max_pixels,
        freeze=freeze,
        micro_batch=micro_batch,
        grad_accum=grad_accum,
        method=method,
        quantization=quantization,
        lora_rank=lora_rank,
        lora_targets=lora_targets,
        grad_checkpointing=grad_checkpointing,
        attention=attention,
        fused_loss=fused_loss,
        loss_shards=loss_shards,
        liger=liger,
        sequence_parallel=sequence_parallel,
        tiled_mlp=tiled_mlp,
        activation_offload=activation_offload,
        expandable_segments=expandable_segments,
        optimizer=optimizer,
        load=load,
        deepspeed_version=deepspeed_version,
        transformers_version=transformers_version,
        trl_version=trl_version,
    )
    machines = _given(gpus=gpus, host_ram=host_ram)
    request = _given(
        machines=machines,
        precision=precision,
        rank=rank,
        training=training,
        task=_given(
            task=task,
            teacher=teacher,
            reward_model=reward_model,
            critic=critic,
            reference=reference,
            completion_len=completion_len,
            rollout=rollout,
            rollout_batch=rollout_batch,
            vllm_gpu_memory_utilization=vllm_gpu_memory_utilization,
            vllm_sleep=vllm_sleep,
            vllm_tensor_parallel_size=vllm_tensor_parallel_size,
            trainer=trainer,
        ),
    )
    return Comparison._of(_native.compare(model_argument(model), request, lang), lang)


def plan(
    model: Model,
    *,
    gpus: str,
    host_ram: Optional[Size] = None,
    stage: Optional[int] = None,
    offload: Optional[str] = None,
    micro_batch: Optional[int] = None,
    grad_checkpointing: Optional[bool] = None,
    global_batch: Optional[int] = None,
    precision: Optional[str] = None,
    seq_len: Optional[Size] = None,
    max_seq_len: bool = False,
    method: Optional[str] = None,
    quantization: Optional[str] = None,
    lora_rank: Optional[int] = None,
    attention: Optional[str] = None,
    fused_loss: Union[bool, str, None] = None,
    loss_shards: Optional[int] = None,
    liger: Optional[bool] = None,
    sequence_parallel: Optional[int] = None,
    tiled_mlp: Optional[bool] = None,
    activation_offload: Optional[bool] = None,
    expandable_segments: Optional[bool] = None,
    nvme_path: Optional[str] = None,
    network: Optional[str] = None,
    objective: Optional[str] = None,
    tokens: Optional[str] = None,
    cost: Optional[str] = None,
    target: str = "deepspeed",
    deepspeed_version: Optional[str] = None,
    transformers_version: Optional[str] = None,
    trl_version: Optional[str] = None,
    task: Optional[str] = None,
    teacher: Optional[str] = None,
    reward_model: Optional[str] = None,
    critic: Optional[str] = None,
    reference: Optional[str] = None,
    completion_len: Optional[Size] = None,
    rollout: Optional[str] = None,
    rollout_batch: Optional[int] = None,
    vllm_gpu_memory_utilization: Optional[float] = None,
    vllm_sleep: Optional[bool] = None,
    vllm_tensor_parallel_size: Optional[int] = None,
    trainer: Optional[str] = None,
    lang: Optional[str] = None,
) -> Plan:
    """Plan a run on these GPUs: the recommended strategy and its config, other strategies, and fallbacks.

    zeropilot chooses ``stage``, ``offload`` (``"none"``, ``"optimizer"``, ``"all"``), ``micro_batch`` and
    ``grad_checkpointing``, unless you set them. Every strategy keeps the values that you set. ``target`` is the program
    that reads the config: ``"deepspeed"``, ``"hf-trainer"``, ``"accelerate"``, ``"swift"``, ``"llamafactory"`` or
    ``"axolotl"``. ``fused_loss`` may be ``"either"``. Strategies use NVMe offload only if ``nvme_path`` names a directory
    on a local disk.

    ``objective`` is ``"time"``, ``"cost"`` (on fewer GPUs if that is cheaper) or ``"memory"``. zeropilot estimates the
    time and the cost of the run from ``tokens`` (``"10B"``) and ``cost`` (``"2.5/gpu-hour"``). ``network`` describes the links between
    nodes, such as ``"8xNDR"``. With ``max_seq_len``, zeropilot finds the longest sequence that fits; ``plan.longest`` has
    its length and the script changes that it needs. ``task`` and its options are the same as in :func:`memory`.
    """
    software = _given(
        deepspeed_version=deepspeed_version, transformers_version=transformers_version, trl_version=trl_version
    )
    training = _given(
        seq_len=seq_len,
        micro_batch=micro_batch,
        grad_checkpointing=grad_checkpointing,
        method=method,
        quantization=quantization,
        lora_rank=lora_rank,
        attention=attention,
        liger=liger,
        sequence_parallel=sequence_parallel,
        tiled_mlp=tiled_mlp,
        activation_offload=activation_offload,
        expandable_segments=expandable_segments,
        software=software or None,
    )
    request = _given(
        machines=_given(gpus=gpus, host_ram=host_ram, network=network),
        stage=stage,
        offload=offload,
        global_batch=global_batch,
        max_seq_len=max_seq_len or None,
        precision=precision,
        training=training,
        task=_given(
            task=task,
            teacher=teacher,
            reward_model=reward_model,
            critic=critic,
            reference=reference,
            completion_len=completion_len,
            rollout=rollout,
            rollout_batch=rollout_batch,
            vllm_gpu_memory_utilization=vllm_gpu_memory_utilization,
            vllm_sleep=vllm_sleep,
            vllm_tensor_parallel_size=vllm_tensor_parallel_size,
            trainer=trainer,
        ),
        fused_loss=fused_loss,
        nvme_path=nvme_path,
        objective=objective,
        bill=_given(tokens=tokens, cost=cost) or None,
    )
    request["for"] = target
    return Plan._of(_native.plan(model_argument(model), request, lang), lang)


def simulate(
    model: Model,
    *,
    gpus: str,
    config: Optional[Config] = None,
    stage: Optional[int] = None,
    offload: Optional[str] = None,
    without_deepspeed: bool = False,
    precision: Optional[str] = None,
    host_ram: Optional[Size] = None,
    network: Optional[str] = None,
    nvme: Optional[str] = None,
    seq_len: Optional[Size] = None,
    target_len: Optional[int] = None,
    image: Optional[str] = None,
    images_per_sample: Optional[int] = None,
    max_pixels: Optional[int] = None,
    freeze: Sequence[str] = (),
    micro_batch: Optional[int] = None,
    grad_accum: Optional[int] = None,
    method: Optional[str] = None,
    quantization: Optional[str] = None,
    lora_rank: Optional[int] = None,
    lora_targets: Sequence[str] = (),
    grad_checkpointing: Optional[bool] = None,
    attention: Optional[str] = None,
    fused_loss: Union[bool, str, None] = None,
    loss_shards: Optional[int] = None,
    liger: Optional[bool] = None,
    sequence_parallel: Optional[int] = None,
    tiled_mlp: Optional[bool] = None,
    activation_offload: Optional[bool] = None,
    expandable_segments: Optional[bool] = None,
    optimizer: Optional[str] = None,
    load: Optional[str] = None,
    scale: Optional[Tuple[int, int]] = None,
    strong: bool = False,
    tokens: Optional[str] = None,
    cost: Optional[str] = None,
    deepspeed_version: Optional[str] = None,
    transformers_version: Optional[str] = None,
    trl_version: Optional[str] = None,
    task: Optional[str] = None,
    teacher: Optional[str] = None,
    reward_model: Optional[str] = None,
    critic: Optional[str] = None,
    reference: Optional[str] = None,
    completion_len: Optional[Size] = None,
    rollout: Optional[str] = None,
    rollout_batch: Optional[int] = None,
    vllm_gpu_memory_utilization: Optional[float] = None,
    vllm_sleep: Optional[bool] = None,
    vllm_tensor_parallel_size: Optional[int] = None,
    trainer: Optional[str] = None,
    lang: Optional[str] = None,
) -> Simulation:
    """Predict the time of a training step, its waits and its communication volume.

    ``scale`` repeats the simulation on other numbers of GPUs, from the smallest to the largest. With ``strong``, the
    global batch size stays the same. The other arguments are the same as in ``memory`` and ``plan``.
    """
    training = _training(
        seq_len=seq_len,
        target_len=target_len,
        image=image,
        images_per_sample=images_per_sample,
        max_pixels=max_pixels,
        freeze=freeze,
        micro_batch=micro_batch,
        grad_accum=grad_accum,
        method=method,
        quantization=quantization,
        lora_rank=lora_rank,
        lora_targets=lora_targets,
        grad_checkpointing=grad_checkpointing,
        attention=attention,
        fused_loss=fused_loss,
        loss_shards=loss_shards,
        liger=liger,
        sequence_parallel=sequence_parallel,
        tiled_mlp=tiled_mlp,
        activation_offload=activation_offload,
        expandable_segments=expandable_segments,
        optimizer=optimizer,
        load=load,
        deepspeed_version=deepspeed_version,
        transformers_version=transformers_version,
        trl_version=trl_version,
    )
    job = _given(
        machines=_given(gpus=gpus, host_ram=host_ram, network=network, nvme=nvme),
        stage=stage,
        offload=offload,
        without_deepspeed=without_deepspeed or None,
        precision=precision,
        training=training,
        task=_given(
            task=task,
            teacher=teacher,
            reward_model=reward_model,
            critic=critic,
            reference=reference,
            completion_len=completion_len,
            rollout=rollout,
            rollout_batch=rollout_batch,
            vllm_gpu_memory_utilization=vllm_gpu_memory_utilization,
            vllm_sleep=vllm_sleep,
            vllm_tensor_parallel_size=vllm_tensor_parallel_size,
            trainer=trainer,
        ),
    )
    request = _given(job=job, scale=scale, strong=strong)
    written = None if config is None else config_argument(config)
    bill = _given(tokens=tokens, cost=cost) or None
    return Simulation._of(_native.simulate(model_argument(model), request, written, bill, lang), lang)


def _judging(
    world_size: Optional[int],
    front_end: Optional[str],
    script: Mapping[str, Any],
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Dict[str, Any]:
    return _given(
        world_size=world_size,
        front_end=front_end,
        select=list(select),
        ignore=list(ignore),
        script=dict(script),
    )


def check(
    config: Config,
    *,
    world_size: Optional[int] = None,
    deepspeed_version: Optional[str] = None,
    front_end: Optional[str] = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    lang: Optional[str] = None,
    **script: Unpack[Script],
) -> Check:
    """Check whether DeepSpeed accepts this config and uses every key.

    ``script`` holds the arguments of the training script, with the names of ``transformers.TrainingArguments``
    (``per_device_train_batch_size=2, bf16=True``). It may also have ``mixed_precision`` for accelerate and the
    ``hidden_size`` of the model. These values fill ``"auto"`` and must agree with the config.
    """
    judging = _judging(world_size, front_end, script, select, ignore)
    return Check._of(
        _native.check(config_argument(config), judging, deepspeed_version, lang), lang
    )


def resolve(
    config: Config,
    *,
    world_size: Optional[int] = None,
    deepspeed_version: Optional[str] = None,
    front_end: Optional[str] = None,
    lang: Optional[str] = None,
    **script: Unpack[Script],
) -> Resolved:
    """Return the values that DeepSpeed has after loading this config: batch sizes, filled ``"auto"`` and defaults.

    ``script`` is the same as in ``check``. Raises ``ZeropilotError`` with the findings if DeepSpeed rejects the config.
    """
    judging = _judging(world_size, front_end, script)
    return Resolved._of(
        _native.resolve(config_argument(config), judging, deepspeed_version, lang), lang
    )


def diagnose(text: str, *, lang: Optional[str] = None) -> LogDiagnosis:
    """Diagnose why a run ran out of GPU or host memory (CUDA OOM) from the text of its log.

    The answer has the cause, the numbers, the evidence and the first change to make. ``cause`` is ``None`` if the text has
    no out-of-memory message.
    """
    return LogDiagnosis._of(_native.diagnose(text, lang), lang)


def explain(
    topic: Optional[Config] = None,
    *,
    world_size: Optional[int] = None,
    deepspeed_version: Optional[str] = None,
    front_end: Optional[str] = None,
    lang: Optional[str] = None,
    **script: Unpack[Script],
) -> Explanation:
    """Explain a key, a concept or a whole config; without a topic, list everything that zeropilot explains."""
    asked = None if topic is None else config_argument(topic)
    judging = _judging(world_size, front_end, script)
    answer = _native.explain(asked, judging, deepspeed_version, lang)
    return KINDS[answer.json(lang)["kind"]]._of(answer, lang)


def diff(
    left: Config,
    right: Config,
    *,
    world_size: Optional[int] = None,
    deepspeed_version: Optional[str] = None,
    front_end: Optional[str] = None,
    lang: Optional[str] = None,
    **script: Unpack[Script],
) -> Difference:
    """Compare two configs: differences in behavior, memory and speed."""
    judging = _judging(world_size, front_end, script)
    names = (config_argument(left), config_argument(right))
    return Difference._of(_native.diff(*names, judging, deepspeed_version, lang), lang)
