"""What every storage that is alive at rest belongs to: the engine's own attributes, one after the other.

A storage belongs to the first category that reaches it. What none reaches is counted as `misc`: buffers of the
model, the batch, scalars. Where the engine puts a category when there is a real device cannot be seen on the CPU;
it is known from what the engine asked to be pinned, and from which attribute it keeps the tensor in.
"""

import torch
from deepspeed.accelerator import get_accelerator

from measure.recorder import key_of

# Kept in ordinary or pinned memory by an engine that offloads; the device otherwise.
HOST_OF_OPTIMIZER_OFFLOAD = {
    "master", "master_grad", "lp_host_staging", "temp_grad_cpu", "acc_grads_cpu", "nvme_gradients",
}  # fmt: skip


class Pinned:
    """The storages the engine asked its accelerator to pin, which on the CPU does nothing."""

    def __init__(self):
        self._keys = {}
        accelerator = get_accelerator()
        pin = accelerator.pin_memory

        def pin_memory(tensor, *arguments, **keywords):
            pinned = pin(tensor, *arguments, **keywords)
            self._keys[key_of(pinned)] = pinned.untyped_storage().nbytes()
            return pinned

        accelerator.pin_memory = pin_memory

    def __contains__(self, tensor):
        return self._keys.get(key_of(tensor)) == tensor.untyped_storage().nbytes()


def tensors(value):
    """All tensors inside lists, dictionaries and the engine's own containers."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        if hasattr(value, "flat_partition"):
            yield value.flat_partition
        for item in value:
            yield from tensors(item)


def stages_1_and_2(optimizer):
    found = vars(optimizer).get
    yield "lp_flat", found("bit16_groups_flat")
    yield "lp_host_staging", found("param_buffer_of_bit16_for_cpu_offload_groups")
    yield "master", found("single_partition_of_fp32_groups")
    yield "master_grad", [p.grad for p in found("single_partition_of_fp32_groups", [])]
    yield "temp_grad_cpu", found("temp_grad_buffer_for_cpu_offload")
    yield "temp_grad_gpu", found("temp_grad_buffer_for_gpu_offload")
    yield "acc_grads_cpu", found("accumulated_grads_in_cpu")
    averaged = found("averaged_gradients") or {}
    yield "avg_flat", [v.flat_partition for v in averaged.values() if hasattr(v, "flat_partition")]
    yield "averaged_gradients", averaged
    yield "all_grad_tensors", found("all_grad_tensors")


def stage_3(optimizer):
    found = vars(optimizer).get
    yield "lp_host_flat", found("param_groups_fp16_flat_cpu_memory")
    yield "lp_flat", found("lp_param_buffer")
    yield "master", found("fp32_partitioned_groups_flat")
    yield "master_grad", [p.grad for p in found("fp32_partitioned_groups_flat", [])]
    yield "grad_partitions", found("grad_partitions_flat_buffer")
    yield "nvme_optimizer_buffers", optimizer_swap_buffers(found("optimizer_swapper"))
    swapped = getattr(found("optimizer_swapper"), "swap_params_info", {}).values()
    yield "nvme_gradients", [info.unswapped_gradients for info in swapped]


def optimizer_swap_buffers(swapper):
    """Page-locked buffers between the files of an NVMe offload and the optimizer."""
    if swapper is None:
        return None
    swappers = [swapper, getattr(swapper, "gradient_swapper", None)]
    pools = [getattr(s, "swap_buffer_manager", None) for s in swappers]
    return [pool.all_buffers for pool in pools if pool is not None]


def parameter_swap_buffers(parameters):
    """The same between files and parameters."""
    for parameter in parameters:
        if getattr(parameter, "nvme_swapper", None) is not None:
            return parameter.nvme_swapper.buffers
    return None


def bf16_optimizer(optimizer):
    found = vars(optimizer).get
    yield "lp_flat", found("bf16_groups_flat")
    yield "master", found("fp32_groups_flat_partition")
    yield "fp32_grads_flat", found("fp32_groups_gradients_flat")


def without_zero(optimizer):
    found = vars(optimizer).get
    yield "lp_flat", found("fp16_groups_flat")
    yield "master", found("fp32_groups_flat") or found("fp32_groups")


WRAPPERS = {
    "DeepSpeedZeroOptimizer": stages_1_and_2,
    "DeepSpeedZeroOptimizer_Stage3": stage_3,
    "BF16_Optimizer": bf16_optimizer,
    "FP16_Optimizer": without_zero,
    "FP16_UnfusedOptimizer": without_zero,
}


def of_parameters(model):
    parameters = list(model.parameters())
    shards = [p for p in parameters if hasattr(p, "ds_tensor") and p.ds_tensor is not None]
    yield "nvme_param_buffers", parameter_swap_buffers(shards)
    yield "lp_flat", [p.ds_tensor for p in shards if p.requires_grad]
    yield "ds_tensor_frozen", [p.ds_tensor for p in shards if not p.requires_grad]
    yield "ds_secondary", [getattr(p, "ds_secondary_tensor", None) for p in shards]
    whole = {id(p) for p in shards}
    yield "param_data_persist", [p.data for p in shards if p.ds_persist]
    yield "param_data_gathered", [p.data for p in shards if not p.ds_persist]
    yield "param", [p.data for p in parameters if p.requires_grad and id(p) not in whole]
    yield "param_frozen", [p.data for p in parameters if not p.requires_grad and id(p) not in whole]
    yield "param_grad", [p.grad for p in parameters if p.grad is not None]
    yield "grad_accum", [getattr(p, "grad_accum", None) for p in parameters]


def categories(engine):
    """(category, tensors) in the order in which they may claim a storage."""
    optimizer = engine.optimizer
    if optimizer is None:
        # A frozen model below stage 3.
        yield from of_parameters(engine.module)
        return
    wrapper = WRAPPERS.get(type(optimizer).__name__)
    if wrapper:
        yield from wrapper(optimizer)
        for bucket in vars(optimizer).get("ipg_buckets", {}).values():
            yield "ipg", bucket.buffer
        # Before 0.17: one buffer for all types.
        yield "ipg", vars(optimizer).get("ipg_buffer")
        yield "ipg", vars(optimizer).get("_DeepSpeedZeroOptimizer_Stage3__ipg_bucket_flat_buffer")
    base = vars(optimizer).get("optimizer", optimizer)
    yield from of_states(base)
    backup = vars(optimizer).get("backup_optimizer")
    if backup is not None:
        yield from of_states(backup)
    yield from of_parameters(engine.module)
    # Stages 1 and 2 make a new Adagrad over their partitions; the engine keeps the first one, with its sums.
    yield "opt_replaced", list(getattr(engine.basic_optimizer, "state", {}).values())


def of_states(base):
    for state in getattr(base, "state", {}).values():
        for name, value in state.items():
            yield f"opt_{name}", value


class Placer:
    """Where the engine would put a storage if the accelerator had memory of its own."""

    def __init__(self, engine, pinned):
        self._pinned = pinned
        zero = engine._config.zero_config
        self._optimizer = zero.offload_optimizer is not None and str(zero.offload_optimizer.device) != "none"
        self._parameters = zero.offload_param is not None and str(zero.offload_param.device) != "none"
        self._stage = engine.zero_optimization_stage()
        self._on_device = self._device_share(engine.optimizer) if self._optimizer else set()

    def _device_share(self, optimizer):
        """Sub-groups that a ratio below one keeps on the device: the first ones."""
        groups = vars(optimizer).get("fp32_partitioned_groups_flat", [])
        share = int((1 - vars(optimizer).get("partial_offload", 1.0)) * len(groups))
        keys = set()
        for group in groups[:share]:
            states = getattr(optimizer.optimizer, "state", {}).get(group, {})
            for tensor in [group, group.grad, *states.values()]:
                if isinstance(tensor, torch.Tensor):
                    keys.add(key_of(tensor))
        return keys

    def place(self, category, tensor):
        if key_of(tensor) in self._on_device:
            return "device"
        if tensor in self._pinned or category in ("nvme_optimizer_buffers", "nvme_param_buffers"):
            return "pinned"
        if self._optimizer and (category in HOST_OF_OPTIMIZER_OFFLOAD or category.startswith("opt_")):
            return "host"
        if self._optimizer and self._stage == 3 and category == "grad_partitions":
            return "host"
        if self._parameters and category in ("lp_host_flat", "ds_secondary"):
            return "host"
        return "device"


def at_rest(engine, recorder, pinned):
    """Bytes by category, bytes off the device by place and category, and the bytes no category reaches."""
    placer = Placer(engine, pinned)
    seen, by_category, placed = set(), {}, {}
    for category, value in categories(engine):
        for tensor in tensors(value):
            key = key_of(tensor)
            if key in seen:
                continue
            seen.add(key)
            # Made by a library and never passed through an operator.
            recorder.see(tensor)
            size = recorder.live[key]
            if size == 0:
                continue
            by_category[category] = by_category.get(category, 0) + size
            place = placer.place(category, tensor)
            if place != "device":
                part = placed.setdefault(place, {})
                part[category] = part.get(category, 0) + size
    misc = recorder.total - sum(by_category.values())
    return by_category, placed, misc
