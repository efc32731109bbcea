"""Build the DeepSpeed configs of ``zeropilot new`` from Python."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple, Union

from . import _native
from ._inputs import Model, model_argument
from ._answers import Created

Size = Union[int, str]
Elements = Union[int, float, str]


@dataclass(frozen=True)
class ZeroConfig:
    """Options for a DeepSpeed config. DeepSpeed, or the framework that reads the config, chooses omitted values.

    The global batch size is ``micro_batch_size`` × ``gradient_accumulation`` × ``world_size``. Sizes of fine-grained keys
    are elements, not bytes.
    """

    micro_batch_size: Optional[int] = None
    gradient_accumulation: Optional[int] = None
    stage: Optional[int] = None
    offload: Union[bool, str] = False
    bf16: Optional[bool] = None
    output_path: Union[str, "os.PathLike[str]"] = "ds_zero3.json"

    preset: Optional[str] = None
    target: str = "deepspeed"
    world_size: Optional[int] = None
    global_batch: Optional[int] = None
    model: Optional[Model] = None
    link_bandwidth: Optional[Size] = None

    fp16: bool = False
    fp32: bool = False
    loss_scale: Optional[float] = None
    initial_scale_power: Optional[int] = None
    loss_scale_window: Optional[int] = None
    hysteresis: Optional[int] = None
    min_loss_scale: Optional[int] = None

    offload_optimizer: Optional[str] = None
    offload_param: Optional[str] = None
    nvme_path: Optional[str] = None
    pin_memory: Optional[bool] = None
    aio_block_size: Optional[Size] = None
    aio_queue_depth: Optional[int] = None
    aio_intra_op_parallelism: Optional[int] = None
    aio_single_submit: Optional[bool] = None
    aio_overlap_events: Optional[bool] = None

    optimizer: Optional[str] = None
    learning_rate: Optional[float] = None
    betas: Optional[Tuple[float, float]] = None
    eps: Optional[float] = None
    weight_decay: Optional[float] = None
    scheduler: Optional[str] = None
    warmup_steps: Optional[int] = None
    total_steps: Optional[int] = None
    warmup_type: Optional[str] = None
    clip: Optional[float] = None

    activation_checkpointing: bool = False
    partition_activations: bool = False
    cpu_checkpointing: bool = False
    number_checkpoints: Optional[int] = None
    synchronize_checkpoint_boundary: bool = False
    profile_checkpoints: bool = False
    steps_per_print: Optional[int] = None

    reduce_bucket_size: Optional[Elements] = None
    allgather_bucket_size: Optional[Elements] = None
    overlap_comm: Optional[bool] = None
    contiguous_gradients: Optional[bool] = None
    reduce_scatter: Optional[bool] = None
    round_robin_gradients: Optional[bool] = None
    use_multi_rank_bucket_allreduce: Optional[bool] = None
    ignore_unused_parameters: Optional[bool] = None
    sub_group_size: Optional[Elements] = None
    stage3_prefetch_bucket_size: Optional[Elements] = None
    stage3_param_persistence_threshold: Optional[Elements] = None
    stage3_model_persistence_threshold: Optional[Elements] = None
    stage3_max_live_parameters: Optional[Elements] = None
    stage3_max_reuse_distance: Optional[Elements] = None
    stage3_module_granularity_threshold: Optional[Elements] = None
    stage3_gather_16bit_weights_on_model_save: Optional[bool] = None
    stage3_use_all_reduce_for_fetch_params: Optional[bool] = None
    stage3_allgather_sequential: Optional[bool] = None
    zero_hpz_partition_size: Optional[int] = None
    zero_quantized_weights: Optional[bool] = None
    zero_quantized_nontrainable_weights: Optional[bool] = None
    zero_quantized_gradients: Optional[bool] = None
    memory_efficient_linear: Optional[bool] = None
    offload_optimizer_ratio: Optional[float] = None
    offload_optimizer_buffer_count: Optional[int] = None
    offload_optimizer_pipeline_read: Optional[bool] = None
    offload_optimizer_pipeline_write: Optional[bool] = None
    offload_optimizer_fast_init: Optional[bool] = None
    offload_param_buffer_count: Optional[int] = None
    offload_param_buffer_size: Optional[Elements] = None
    offload_param_max_in_cpu: Optional[Elements] = None

    def _wishes(self) -> Dict[str, Any]:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("output_path", "model"):
            del given[name]
        given["for"] = given.pop("target")
        if self.stage is None and self.preset is None:
            given["stage"] = 3
        knobs = {name: given.pop(name) for name in _KNOBS}
        given["knobs"] = {name: value for name, value in knobs.items() if value is not None}
        return {name: value for name, value in given.items() if value is not None}


_FIRST_KNOB = "reduce_bucket_size"
_NAMES = [field.name for field in dataclasses.fields(ZeroConfig)]
_KNOBS = _NAMES[_NAMES.index(_FIRST_KNOB) :]


def create(
    cfg: ZeroConfig, *, deepspeed_version: Optional[str] = None, lang: Optional[str] = None
) -> Created:
    """Build the config for ``cfg``, with the arguments that the training script must set.

    Raises ``ZeropilotError`` if the options contradict each other, or if DeepSpeed would reject the config.
    """
    model = None if cfg.model is None else model_argument(cfg.model)
    answer = _native.create(cfg._wishes(), model, False, deepspeed_version, lang)
    return Created._of(answer, lang)


def build_config(
    cfg: ZeroConfig, *, deepspeed_version: Optional[str] = None, lang: Optional[str] = None
) -> Dict[str, Any]:
    """Build the config for ``cfg`` as a dictionary."""
    return create(cfg, deepspeed_version=deepspeed_version, lang=lang).config


def save_config(config: Mapping[str, Any], path: Union[str, "os.PathLike[str]"]) -> None:
    """Write a config to a JSON file in one atomic step."""
    text = json.dumps(config, indent=2, ensure_ascii=False) + "\n"
    target = os.path.abspath(os.fspath(path))
    handle, draft = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".zeropilot-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(draft, 0o666 & ~mask)
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise
