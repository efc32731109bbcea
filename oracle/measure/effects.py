"""What every key does to memory and communication: `knowledge/effects/measured.json`.

    python -m measure.effects               in `oracle/`: measure what is not in the file yet, and write it
    python -m measure.effects --all         measure everything again, and write it
    python -m measure.effects --check n [seed]   measure n of the cases (0: all) again and compare

A baseline is a model, a stage and what has to be set so that a key is read at all; a case is a baseline with one key set.
A case with the bytes and calls of its baseline says `same`, one the engine refuses says `refused`. The cases `without_needs` set a
key on a baseline that lacks what the text of the key says it needs.
"""

import json
import pathlib
import random
import sys
from importlib import metadata

from measure.sweep import CPU, LLAMA, answers, merged, plain

FILE = pathlib.Path(__file__).parents[2] / "knowledge" / "effects" / "measured.json"

MODELS = {
    "llama": LLAMA,
    "gpt2": {
        "model_type": "gpt2", "n_embd": 48, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 503,
        "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0,
    },
    "qwen3_moe": {
        "model_type": "qwen3_moe", "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
        "intermediate_size": 77, "moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2,
        "num_hidden_layers": 2, "vocab_size": 503, "max_position_embeddings": 128, "tie_word_embeddings": False,
    },
}  # fmt: skip
# None of its sizes is a multiple of what buffers are aligned to.
MODELS["odd gpt2"] = {**MODELS["gpt2"], "n_embd": 42, "n_head": 2}
RECIPE = {"world": 2, "seq": 16, "attention": "sdpa"}

OFFLOAD = {"zero_optimization": {"offload_optimizer": CPU}}
OFFLOAD_BOTH = {"zero_optimization": {"offload_optimizer": CPU, "offload_param": CPU}}
NVME = {"device": "nvme", "nvme_path": "/nvme"}
FP32 = {"bf16": {"enabled": False}}
FP16 = {**FP32, "fp16": {"enabled": True, "loss_scale": 16}}
DYNAMIC = {**FP32, "fp16": {"enabled": True, "loss_scale": 0, "initial_scale_power": 4}}
STREAMING = {"zero_optimization": {"stage3_param_persistence_threshold": 100}}
ZENFLOW = {"select_strategy": "step", "select_interval": 2, "update_interval": 2}
ALL_REDUCE = {"zero_optimization": {"reduce_scatter": False}}
UNTESTED = {"zero_allow_untested_optimizer": True}
SCHEDULE = {"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 100}}}

# What has to be set so that some keys are read.
CONTEXTS = {
    "": {},
    "accumulating": {"gradient_accumulation_steps": 2},
    "accumulating in fp32": {"data_types": {"grad_accum_dtype": "fp32"}},
    "fp32": FP32,
    "fp32, accumulating in fp32": {**FP32, "data_types": {"grad_accum_dtype": "fp32"}},
    "fp16": FP16,
    "dynamic scale": DYNAMIC,
    "offload": OFFLOAD,
    "offload, fp16": {**FP16, **OFFLOAD},
    "offload, bf16 masters": {**OFFLOAD, "bf16": {"bf16_master_weights_and_grads": True}},
    "offload, sub-groups": merged(OFFLOAD, {"zero_optimization": {"sub_group_size": 4000}}),
    "offload both": OFFLOAD_BOTH,
    # Below stage 3, DeepSpeed does not open the path.
    "offload to nvme": {"zero_optimization": {"offload_optimizer": NVME, "offload_param": NVME}},
    "no offload": {"zero_optimization": {"offload_optimizer": {"device": "none"}}},
    "streaming": STREAMING,
    "no prefetch": merged(STREAMING, {"zero_optimization": {"stage3_prefetch_bucket_size": 0}}),
    "autocast": {**FP32, "torch_autocast": {"enabled": True}},
    "sgd": {**UNTESTED, "optimizer": {"type": "SGD"}},
    "all-reduce": ALL_REDUCE,
    "untested optimizer": UNTESTED,
    "untested optimizer, offload": {**UNTESTED, **OFFLOAD},
    "muon": {**ALL_REDUCE, "optimizer": {"type": "Muon"}},
    "autotp": {"tensor_parallel": {"autotp_size": 2}},
    "schedule": SCHEDULE,
    "comms logger": {"comms_logger": {"enabled": True}},
    # The step that is measured is the one after two.
    "third step": {"flops_profiler": {"profile_step": 2}},
    "flops profiler": {"flops_profiler": {"enabled": True, "profile_step": 2}},
    "own checkpointing": {"activation_checkpointing": {"partition_activations": True}},
    "no throughput timer": {"timers": {"throughput": {"enabled": False}}},
    "no clipping": {"gradient_clipping": 0.0},
    # Models of their own.
    "qwen3_moe": {},
    "odd gpt2": {},
}

ALL, ZERO, EARLY, LATE, ENDS = (0, 1, 2, 3), (1, 2, 3), (1, 2), (2, 3), (0, 3)
Z = "zero_optimization."

# Key, values, stages, context.
KEYS = [
    ("train_micro_batch_size_per_gpu", [1, 3], ALL, ""),
    ("gradient_accumulation_steps", [2, 3], ALL, ""),
    ("train_batch_size", [4], ENDS, ""),
    ("managed_gradient_accumulation", [False], ENDS, "accumulating"),
    ("communication_data_type", ["fp32", "fp16"], ALL, ""),
    ("seq_parallel_communication_data_type", ["bf16"], ENDS, ""),
    ("sequence_parallel_size", [2], ENDS, ""),
    ("use_data_before_expert_parallelism", [True], ENDS, ""),
    ("gradient_clipping", [0.0, 0.5], ALL, ""),
    ("gradient_clipping", [0.0], ALL, "fp32"),
    ("gradient_predivide_factor", [2.0], (0, 1), ""),
    ("gradient_predivide_factor", [2.0], LATE, "all-reduce"),
    ("prescale_gradients", [True], (0, 1), ""),
    ("prescale_gradients", [True], LATE, "all-reduce"),
    ("gradient_allreduce_op", ["sum"], (0, 1, 2), ""),
    ("disable_allgather", [True], (0, 1), ""),
    ("disable_python_gc", [True], ENDS, ""),
    ("dataloader_drop_last", [True], (2,), ""),
    ("vocabulary_size", [512], (2,), ""),
    ("zero_allow_untested_optimizer", [True], ALL, ""),
    ("zero_force_ds_cpu_optimizer", [False], ZERO, "offload"),
    ("memory_breakdown", [True], ENDS, ""),
    ("wall_clock_breakdown", [True], ENDS, ""),
    ("timers.throughput.enabled", [False], ENDS, ""),
    ("timers.throughput.synchronized", [False], (3,), ""),
    ("steps_per_print", [1], (2,), ""),
    ("dump_state", [True], (2,), ""),
    ("log_level", ["debug"], (2,), ""),
    ("comms_logger.enabled", [True], ENDS, ""),
    ("comms_logger.prof_all", [False], (3,), "comms logger"),
    ("comms_logger.prof_ops", [["all_gather"]], (3,), "comms logger"),
    ("comms_logger.verbose", [True], (3,), "comms logger"),
    ("comms_logger.debug", [True], (3,), "comms logger"),
    ("flops_profiler.enabled", [True], ENDS, "third step"),
    ("flops_profiler.profile_step", [5], ENDS, "flops profiler"),
    ("flops_profiler.module_depth", [1], (3,), "flops profiler"),
    ("flops_profiler.top_modules", [2], (3,), "flops profiler"),
    ("flops_profiler.detailed", [False], (3,), "flops profiler"),
    ("flops_profiler.recompute_fwd_factor", [1.0], (3,), "flops profiler"),
    ("activation_checkpointing.partition_activations", [True], ENDS, ""),
    ("activation_checkpointing.cpu_checkpointing", [True], ENDS, ""),
    ("activation_checkpointing.contiguous_memory_optimization", [True], (2,), "own checkpointing"),
    ("activation_checkpointing.number_checkpoints", [2], (2,), "own checkpointing"),
    ("activation_checkpointing.synchronize_checkpoint_boundary", [True], (2,), ""),
    ("activation_checkpointing.profile", [True], (2,), ""),
    ("checkpoint.tag_validation", ["FAIL"], (3,), ""),
    ("checkpoint.load_universal", [True], (3,), ""),
    ("checkpoint.use_node_local_storage", [True], (3,), ""),
    ("checkpoint.parallel_write.pipeline_stage", [True], (3,), ""),
    ("checkpoint.checkpoint_serialization", [False], (3,), ""),
    ("compile.deepcompile", [True], ZERO, ""),
    ("hybrid_engine.enabled", [True], (2, 3), ""),
    ("weight_quantization.quantized_initialization", [{"num_bits": 8, "group_size": 16, "group_dim": 0, "symmetric": False}], ENDS, ""),
    ("weight_quantization.post_init_quant", [{"lm_head": {"num_bits": 8, "group_size": 16}}], ENDS, ""),
    ("data_efficiency.enabled", [True], (2,), ""),
    ("autotuning.enabled", [True], (2,), ""),
    ("pipeline.activation_checkpoint_interval", [1], (1,), ""),
    ("expert_parallel.enabled", [True], (0, 2), "qwen3_moe"),
    ("tensor_parallel.autotp_size", [2], (0, 1, 2), ""),
    ("tensor_parallel.tp_overlap_comm", [True], (1,), "autotp"),
    ("optimizer.type", ["Adam", "Adagrad"], ALL, ""),
    ("optimizer.type", ["Muon"], (0, 1, 2), ""),
    ("optimizer.type", ["Muon"], (3,), "all-reduce"),
    ("optimizer.type", ["SGD"], ALL, "untested optimizer"),
    ("optimizer.type", ["Lion", "Lamb"], (0, 2), ""),
    ("optimizer.type", ["Adam", "Adagrad", "Lion"], ZERO, "offload"),
    ("optimizer.type", ["SGD"], ZERO, "untested optimizer, offload"),
    ("optimizer.params.torch_adam", [True], ALL, ""),
    ("optimizer.params.torch_adam", [True], (1, 3), "offload"),
    ("optimizer.params.adam_w_mode", [False], (2,), ""),
    ("optimizer.params.lr", [0.01], (2,), ""),
    ("optimizer.params.betas", [[0.8, 0.9]], (2,), ""),
    ("optimizer.params.eps", [1e-6], (2,), ""),
    ("optimizer.params.weight_decay", [0.1], (2,), ""),
    ("optimizer.params.max_grad_norm", [0.5], ENDS, ""),
    ("optimizer.params.momentum", [0.9], ALL, "sgd"),
    ("optimizer.legacy_fusion", [True], (0,), ""),
    ("scheduler.type", ["WarmupCosineLR"], (2,), "schedule"),
    ("scheduler.params.warmup_num_steps", [5], (2,), "schedule"),
    ("fp16.enabled", [True], ALL, "fp32"),
    ("fp16.auto_cast", [True], ALL, "fp16"),
    ("fp16.loss_scale", [4], ENDS, "fp16"),
    ("fp16.initial_scale_power", [3], ENDS, "dynamic scale"),
    ("fp16.loss_scale_window", [2], (2,), "dynamic scale"),
    ("fp16.hysteresis", [1], (2,), "dynamic scale"),
    ("fp16.consecutive_hysteresis", [True], (2,), "dynamic scale"),
    ("fp16.min_loss_scale", [2], (2,), "dynamic scale"),
    ("fp16.fp16_master_weights_and_grads", [True], ZERO, "offload, fp16"),
    # It acts although fp16 is off.
    ("fp16.fp16_master_weights_and_grads", [True], ZERO, "offload"),
    ("bf16.enabled", [True], ALL, "fp32"),
    ("bf16.immediate_grad_update", [True], (1,), "accumulating in fp32"),
    ("bf16.immediate_grad_update", [True], (0, 1), ""),
    ("bf16.check_grad_overflow", [False], ALL, ""),
    ("bf16.bf16_master_weights_and_grads", [True], ZERO, "offload"),
    ("bf16.bf16_optimizer_states", [True], ZERO, "offload, bf16 masters"),
    ("torch_autocast.enabled", [True], ALL, "fp32"),
    ("torch_autocast.dtype", ["float16"], ENDS, "autocast"),
    ("torch_autocast.lower_precision_safe_modules", [["torch.nn.Embedding"]], ENDS, "autocast"),
    ("data_types.grad_accum_dtype", ["fp32"], ALL, ""),
    ("data_types.grad_accum_dtype", ["fp32"], ZERO, "offload"),
    ("data_types.buffer_dtype", ["fp32", "bf16"], ENDS, ""),
    ("data_types.keep_in_fp32_modules", [["norm"]], ALL, ""),
    ("data_types.param_dtype", ["fp32"], ENDS, ""),
    (Z + "contiguous_gradients", [False], ZERO, ""),
    (Z + "contiguous_gradients", [False], (1, 2), "offload"),
    (Z + "reduce_scatter", [False], ZERO, ""),
    (Z + "reduce_bucket_size", [600, 500_000_000], ZERO, ""),
    (Z + "use_multi_rank_bucket_allreduce", [False], EARLY, ""),
    (Z + "allgather_partitions", [False], EARLY, ""),
    (Z + "allgather_bucket_size", [600, 500_000_000], ZERO, ""),
    (Z + "overlap_comm", [True, False], ZERO, ""),
    (Z + "overlap_comm", [True, False], LATE, "offload"),
    (Z + "compute_grad_norm", [False], ZERO, "no clipping"),
    (Z + "load_from_fp32_weights", [False], (2,), ""),
    (Z + "elastic_checkpoint", [True], (2,), ""),
    (Z + "ignore_unused_parameters", [False], EARLY, ""),
    (Z + "legacy_stage1", [True], (1,), ""),
    (Z + "round_robin_gradients", [True], EARLY, ""),
    (Z + "round_robin_gradients", [True], EARLY, "offload"),
    (Z + "parameter_alignment", [True], EARLY, "odd gpt2"),
    (Z + "cpu_offload", [True], ZERO, ""),
    (Z + "cpu_offload_param", [True], (3,), ""),
    (Z + "cpu_offload_use_pin_memory", [True], LATE, "offload"),
    (Z + "offload_optimizer.device", ["cpu"], ZERO, ""),
    (Z + "offload_optimizer.pin_memory", [False], ZERO, "offload"),
    (Z + "offload_optimizer.buffer_count", [2], (3,), "offload"),
    (Z + "offload_optimizer.pipeline_read", [True], (3,), "offload"),
    (Z + "offload_optimizer.pipeline_write", [True], (3,), "offload"),
    (Z + "offload_optimizer.fast_init", [True], (3,), "offload"),
    (Z + "offload_optimizer.ratio", [0.5], (3,), "offload, sub-groups"),
    (Z + "offload_optimizer.super_offload", [True], (3,), "offload"),
    (Z + "offload_optimizer.cpuadam_cores_perc", [0.5], (3,), "offload"),
    (Z + "offload_param.device", ["cpu"], (3,), "offload"),
    (Z + "offload_param.pin_memory", [False], (3,), "offload both"),
    (Z + "offload_param.buffer_count", [2], (3,), "offload both"),
    (Z + "offload_param.buffer_size", [1000], (3,), "offload both"),
    (Z + "offload_param.max_in_cpu", [1000], (3,), "offload both"),
    (Z + "zenflow", [ZENFLOW, {**ZENFLOW, "topk_ratio": 0.5}], ZERO, "offload"),
    (Z + "sub_group_size", [4000], ZERO, ""),
    (Z + "stage3_prefetch_bucket_size", [0, 3000], (3,), "streaming"),
    (Z + "stage3_param_persistence_threshold", [0, 3000], LATE, ""),
    (Z + "stage3_model_persistence_threshold", [6000], (3,), ""),
    (Z + "stage3_max_live_parameters", [6000], (3,), "streaming"),
    (Z + "stage3_max_reuse_distance", [0, 5000], (3,), "no prefetch"),
    (Z + "stage3_gather_16bit_weights_on_model_save", [True], LATE, ""),
    (Z + "stage3_gather_fp16_weights_on_model_save", [True], (3,), ""),
    (Z + "stage3_module_granularity_threshold", [3000, 1_000_000], (3,), "streaming"),
    (Z + "stage3_use_all_reduce_for_fetch_params", [True], (3,), "streaming"),
    (Z + "stage3_allgather_sequential", [True], (3,), "streaming"),
    (Z + "zero_hpz_partition_size", [2], (3,), "streaming"),
    (Z + "zero_quantized_weights", [True], (3,), "streaming"),
    (Z + "zero_quantized_nontrainable_weights", [True], (3,), "streaming"),
    (Z + "zero_quantized_gradients", [True], (3,), "streaming"),
    (Z + "memory_efficient_linear", [False], LATE, ""),
    (Z + "pipeline_loading_checkpoint", [True], (2,), ""),
    (Z + "override_module_apply", [False], (3,), ""),
    (Z + "log_trace_cache_warnings", [True], (3,), ""),
    (Z + "enable_sanity_checks", [True], (3,), "streaming"),
    (Z + "save_muon_momentum_buffer_in_memory", [True], (3,), "muon"),
    (Z + "leaf_module.classes", [["LlamaDecoderLayer", "GPT2Block"]], (3,), "streaming"),
    (Z + "leaf_module.names", [["model.layers.0", "transformer.h.0"]], (3,), "streaming"),
    (Z + "leaf_module.name_suffixes", [["mlp"]], (3,), "streaming"),
    (Z + "stage", [0, 1, 2, 3], (2,), ""),
]  # fmt: skip

# Keys on baselines that lack what `needs` of the key's text says: every byte and call must be the baseline's.
WITHOUT_NEEDS = [
    *[
        (Z + key, [value], (2,), "")
        for key, value in {
            "stage3_prefetch_bucket_size": 3000,
            "stage3_model_persistence_threshold": 6000,
            "stage3_max_live_parameters": 6000,
            "stage3_max_reuse_distance": 5000,
            "stage3_gather_fp16_weights_on_model_save": True,
            "stage3_module_granularity_threshold": 3000,
            "stage3_use_all_reduce_for_fetch_params": True,
            "stage3_allgather_sequential": True,
            "zero_hpz_partition_size": 2,
            "zero_quantized_weights": True,
            "zero_quantized_nontrainable_weights": True,
            "override_module_apply": False,
            "log_trace_cache_warnings": True,
            "enable_sanity_checks": True,
            "save_muon_momentum_buffer_in_memory": True,
            "leaf_module.classes": ["LlamaDecoderLayer", "GPT2Block"],
            "leaf_module.names": ["model.layers.0", "transformer.h.0"],
            "leaf_module.name_suffixes": ["mlp"],
            "offload_param.device": "cpu",
            "cpu_offload_param": True,
        }.items()
    ],
    (Z + "offload_param.pin_memory", [False], (2,), "offload both"),
    *[(Z + key, [value], (3,), "") for key, value in {"use_multi_rank_bucket_allreduce": False, "round_robin_gradients": True}.items()],
    (Z + "parameter_alignment", [True], (3,), "odd gpt2"),
    (Z + "ignore_unused_parameters", [False], (3,), "offload"),
    *[
        (Z + key, [value], (0,), "")
        for key, value in {
            "contiguous_gradients": False,
            "reduce_scatter": False,
            "reduce_bucket_size": 600,
            "overlap_comm": True,
        }.items()
    ],
    (Z + "offload_optimizer.pin_memory", [False], (0,), "offload"),
    (Z + "offload_optimizer.pin_memory", [False], (2,), "no offload"),
    (Z + "offload_optimizer.ratio", [0.5], (3,), "no offload"),
    (Z + "offload_optimizer.super_offload", [True], (2,), "offload"),
    (Z + "offload_optimizer.nvme_path", ["/nvme"], (3,), "offload"),
    (Z + "offload_param.nvme_path", ["/nvme"], (3,), "offload both"),
    *[
        (Z + key, [value], (2,), "offload to nvme")
        for key, value in {
            "offload_optimizer.nvme_path": "/other",
            "offload_optimizer.buffer_count": 2,
            "offload_optimizer.pipeline_read": True,
            "offload_optimizer.pipeline_write": True,
            "offload_optimizer.fast_init": True,
            "offload_param.nvme_path": "/other",
            "offload_param.buffer_count": 2,
            "offload_param.buffer_size": 1000,
            "offload_param.max_in_cpu": 1000,
        }.items()
    ],
    ("zero_force_ds_cpu_optimizer", [False], (2,), ""),
    *[
        ("fp16." + key, [value], (2,), "")
        for key, value in {
            "auto_cast": True,
            "loss_scale": 4,
            "initial_scale_power": 3,
            "loss_scale_window": 2,
            "hysteresis": 1,
            "consecutive_hysteresis": True,
            "min_loss_scale": 2,
        }.items()
    ],
    ("bf16.immediate_grad_update", [True], (2,), "accumulating in fp32"),
    ("bf16.immediate_grad_update", [True], (1,), "fp32, accumulating in fp32"),
    ("bf16.check_grad_overflow", [False], (2,), "fp32"),
    ("torch_autocast.dtype", ["float16"], (2,), "fp32"),
    ("torch_autocast.lower_precision_safe_modules", [["torch.nn.Embedding"]], (2,), "fp32"),
    ("optimizer.legacy_fusion", [True], (2,), ""),
    ("timers.throughput.synchronized", [False], (2,), "no throughput timer"),
    *[
        (key, [value], (2,), "")
        for key, value in {
            "flops_profiler.profile_step": 2,
            "flops_profiler.module_depth": 1,
            "flops_profiler.top_modules": 2,
            "flops_profiler.detailed": False,
            "flops_profiler.output_file": "profile.txt",
            "flops_profiler.recompute_fwd_factor": 1.0,
            "tensorboard.output_path": "logs",
            "tensorboard.job_name": "job",
            "csv_monitor.output_path": "logs",
            "csv_monitor.job_name": "job",
            "wandb.group": "group",
            "wandb.team": "team",
            "wandb.project": "project",
            "comet.samples_log_interval": 1,
            "comet.project": "project",
            "comet.workspace": "workspace",
            "comet.api_key": "none",
            "comet.experiment_name": "name",
            "comet.experiment_key": "0" * 32,
            "comet.online": False,
            "comet.mode": "create",
            "hybrid_engine.max_out_tokens": 64,
            "hybrid_engine.inference_tp_size": 2,
            "hybrid_engine.release_inference_cache": True,
            "hybrid_engine.pin_parameters": False,
            "hybrid_engine.tp_gather_partition_size": 4,
            "hybrid_engine.enable_cuda_graph": True,
            "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics": {"length": {}},
        }.items()
    ],
    *[
        ("expert_parallel." + key, [value], (2,), "qwen3_moe")
        for key, value in {
            "autoep_size": 2,
            "use_grouped_mm": False,
            "top_k": 1,
            "route_norm": True,
            "route_scale": 2.0,
            "score_apply": "pre",
            "score_func": "sigmoid",
            "combine_impl": "legacy_bmm",
            "gate_up_impl": "fused",
            "comm_backend": "deepep",
            "preset_model": "mixtral",
            "moe_layer_pattern": "none",
        }.items()
    ],
]  # fmt: skip


def with_key(config, path, value):
    for name in reversed(path.split(".")):
        value = {name: value}
    return merged(config, value)


def baseline(model, stage, context):
    """Its name and its config."""
    name = f"{model} stage {stage}" + (f", {context}" if context else "")
    return name, plain(stage, **CONTEXTS[context])["config"]


def request(model, config):
    """What the ranks do: the model is built in the format it trains in, and under `zero.Init` in stage 3."""
    enabled = lambda section: config.get(section, {}).get("enabled")
    dtype = "bfloat16" if enabled("bf16") else "float16" if enabled("fp16") else "float32"
    return {
        **RECIPE,
        "hf_config": MODELS[model],
        "config": config,
        "dtype": dtype,
        "zero_init": config["zero_optimization"]["stage"] == 3,
    }


def planned():
    """Baselines and cases, each once. The second family sees the last stage of keys that several stages read, and of ZeRO's."""
    baselines, cases, without_needs = {}, [], []
    for key, values, stages, context in [*KEYS, *WITHOUT_NEEDS]:
        kind = without_needs if (key, values, stages, context) in WITHOUT_NEEDS else cases
        models = [context] if context in MODELS else ["llama", "gpt2"]
        for model in models:
            if model == "gpt2":
                stages = stages[-1:] if len(stages) > 1 or key.startswith(Z) else ()
            for stage in stages:
                name, config = baseline(model, stage, context)
                baselines[name] = {"name": name, "model": model, "config": config}
                kind += [{"on": name, "key": key, "value": value} for value in values]
    return baselines, cases, without_needs


def outcome(answer):
    """What is kept of an answer. Ranks that sent different calls have a list of them each."""
    if "error" in answer:
        return {"refused": f"{answer['error']}: {' '.join(answer['message'].split())[:160]}"}
    kept = lambda traffic: {"init": traffic["init"], "steady_step": traffic["steady_step"]}
    traffic = answer["traffic"]
    return {
        "base_optimizer": answer["base_optimizer"],
        "ranks": answer["ranks"],
        "traffic": [kept(rank) for rank in traffic] if isinstance(traffic, list) else kept(traffic),
    }


ASKED = {"name", "model", "config", "on", "key", "value"}


def identity(entry):
    return json.dumps({key: entry[key] for key in entry if key in ASKED}, sort_keys=True)


def kept(baselines):
    """What the file has, by what was asked; not the cases of a baseline that changed."""
    if "--all" in sys.argv or not FILE.exists():
        return {}
    file = json.loads(FILE.read_text())
    known = {identity(entry): entry for entry in file["baselines"]}
    current = {name for name, entry in baselines.items() if identity(entry) in known}
    cases = file["cases"] + file["without_needs"]
    return known | {identity(case): case for case in cases if case["on"] in current}


def write(baselines, cases, without_needs):
    versions = {name: metadata.version(name).split("+")[0] for name in ("deepspeed", "torch", "transformers")}
    head = json.dumps({"versions": versions, "recipe": RECIPE, "models": MODELS}, indent=1)[:-2]
    lines = lambda entries: ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
    lists = {"baselines": baselines, "cases": cases, "without_needs": without_needs}
    FILE.write_text(head + "".join(f',\n "{name}": [\n{lines(entries)}\n]' for name, entries in lists.items()) + "}\n")


def measured(jobs):
    """What was asked with its outcome, as JSON has it."""
    for (asked, _), (_, answer) in zip(jobs, answers(job for _, job in jobs)):
        print(asked.get("name") or asked, file=sys.stderr)
        yield json.loads(json.dumps({**asked, **outcome(answer)}))


def case_job(case, baselines):
    on = baselines[case["on"]]
    return case, request(on["model"], with_key(on["config"], case["key"], case["value"]))


def shortened(case, on):
    """A case that did what its baseline did says so."""
    same = "ranks" in case and all(case[part] == on.get(part) for part in ("ranks", "traffic"))
    return {**{key: case[key] for key in ("on", "key", "value")}, "same": True} if same else case


def update():
    baselines, cases, without_needs = json.loads(json.dumps(planned()))
    known = kept(baselines)
    jobs = [(entry, request(entry["model"], entry["config"])) for entry in baselines.values()]
    jobs += [case_job(case, baselines) for case in cases + without_needs]
    missing = [(asked, job) for asked, job in jobs if identity(asked) not in known]
    known |= {identity(entry): entry for entry in measured(missing)}
    full = {name: known[identity(entry)] for name, entry in baselines.items()}
    short = lambda cases: [shortened(known[identity(case)], full[case["on"]]) for case in cases]
    write(full.values(), short(cases), short(without_needs))


def check(count, seed=0):
    file = json.loads(FILE.read_text())
    baselines = {entry["name"]: entry for entry in file["baselines"]}
    cases = file["cases"] + file["without_needs"]
    different = sample = random.Random(seed).sample(cases, count or len(cases))
    # When gloo gives its buffers back is up to chance, and a peak shows it: what has changed differs every time.
    for _ in range(3):
        jobs = [case_job({key: case[key] for key in case if key in ASKED}, baselines) for case in different]
        again = [shortened(case, baselines[case["on"]]) for case in measured(jobs)]
        pairs = [(before, now) for before, now in zip(different, again) if now != before]
        for before, now in pairs:
            print({part: (before.get(part), now.get(part)) for part in before | now if before.get(part) != now.get(part)})
        different = [before for before, _ in pairs]
        if not different:
            break
    print(f"{len(sample)} cases measured again, different: {[case['key'] for case in different]}")
    return bool(different)


def main():
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(*map(int, sys.argv[2:4])))
    update()


if __name__ == "__main__":
    main()
