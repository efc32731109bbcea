"""What the sweep does not cover: `knowledge/measured/extensions.json`.

    python -m measure.situations [kind]     in `oracle/`

Kinds: `checkpointing` (DeepSpeed's activation checkpointing), `teacher`, `load` (`from_pretrained`), `save` (16-bit
gather, checkpoints), `nvme`. The last needs the engine's asynchronous I/O operator, that is libaio's headers.
"""

import contextlib
import json
import pathlib
import sys
import tempfile

import engine  # noqa: F401  silences and steers the engine before anything else imports it
import torch
import transformers

from measure import files, ranks, recipes
from measure.rank import Rank
from measure.sweep import CPU, LLAMA, merged, plain

FILE = pathlib.Path(__file__).parents[2] / "knowledge" / "measured" / "extensions.json"

# Large enough that what the runtime needs does not hide the weights.
LARGE = {
    "model_type": "llama", "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4, "head_dim": 64,
    "intermediate_size": 2048, "num_hidden_layers": 6, "vocab_size": 16_000, "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}  # fmt: skip
SMALL = {"hf_config": {**LLAMA, "num_hidden_layers": 3}, "world": 2, "seq": 16, "family": "llama"}
STREAMING = {"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": 0, "stage3_max_reuse_distance": 0}

SECTIONS = [
    ("none", False, None),
    ("section-alone", False, {"partition_activations": True, "cpu_checkpointing": True}),
    ("api", True, {}),
    ("api-partition", True, {"partition_activations": True}),
    ("api-contiguous", True, {"partition_activations": True, "contiguous_memory_optimization": True, "number_checkpoints": 3}),
    ("api-cpu", True, {"cpu_checkpointing": True}),
    ("api-partition-cpu", True, {"partition_activations": True, "cpu_checkpointing": True}),
]  # fmt: skip


def checkpointing():
    for name, api, section in SECTIONS:
        more = {} if section is None else {"activation_checkpointing": section}
        for stage in (0, 2, 3):
            yield {**SMALL, "name": f"{name}-s{stage}", "api": api, **plain(stage, **more)}
        if api:
            yield {**SMALL, "name": f"{name}-tp2", "api": True, "tensor_parallel": True, **plain(0, **more)}


def teacher():
    large = {**LLAMA, "num_hidden_layers": 4, "hidden_size": 96, "head_dim": 24}
    partitioned = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True}}
    partitioned["zero_optimization"] = {"stage": 3, "reduce_bucket_size": 10_000}
    streaming = merged(partitioned, {"zero_optimization": STREAMING})
    kinds = [
        ("whole", {"hf_config": large, "config": {}}),
        ("partitioned", {"hf_config": large, "zero_init": True, "config": partitioned}),
        ("partitioned-streaming", {"hf_config": large, "zero_init": True, "config": streaming}),
    ]
    for name, teacher_case in kinds:
        for stage in (0, 2, 3):
            yield {**SMALL, "name": f"{name}-s{stage}", "teacher": teacher_case, **plain(stage)}


def load():
    for world in (1, 2):
        for file_dtype, dtype in (("bfloat16", "bfloat16"), ("bfloat16", "float32"), ("float32", "bfloat16")):
            for zero_init in (False, True):
                name = f"{file_dtype}-as-{dtype}-W{world}" + ("-zero-init" if zero_init else "")
                case = {"name": name, "family": "llama", "hf_config": LARGE, "world": world, "seq": 16}
                case |= plain(3) | {"zero_init": zero_init, "dtype": dtype, "file_dtype": file_dtype}
                yield case


def save():
    gather = {"stage3_gather_16bit_weights_on_model_save": True}
    variants = [
        ("s2", plain(2), {}),
        ("s3", plain(3, zero_optimization=gather), {}),
        ("s3-W1", plain(3, zero_optimization=gather), {"world": 1}),
        ("s3-W3", plain(3, zero_optimization=gather), {"world": 3}),
        ("s3-streaming", plain(3, zero_optimization={**gather, **STREAMING}), {}),
        ("s3-offload", plain(3, zero_optimization={**gather, "offload_param": CPU, "offload_optimizer": CPU}), {}),
        ("s3-tied", plain(3, zero_optimization=gather), {"hf_config": {**SMALL["hf_config"], "tie_word_embeddings": True}}),
        ("s3-lora", plain(3, zero_optimization=gather), {"lora": {"r": 4, "targets": ["q_proj", "v_proj"]}}),
        ("s3-without-the-key", plain(3), {}),
    ]  # fmt: skip
    for name, recipe, more in variants:
        yield {**SMALL, "name": name, **recipe, **more}


def nvme():
    """Only tensors of a MiB or more go to files, so the model is larger than elsewhere."""
    path = {"device": "nvme", "nvme_path": "NVME", "pin_memory": True}
    parameters = {**path, "buffer_count": 8, "buffer_size": 1_100_000}
    pipelined = {**path, "pipeline_read": True, "pipeline_write": True}
    streaming = {**STREAMING, "stage3_param_persistence_threshold": 10_000}
    variants = [
        ("optimizer", {"offload_optimizer": path}),
        ("optimizer-sub-groups", {"offload_optimizer": path, "sub_group_size": 1_000_000}),
        ("optimizer-small-sub-groups", {"offload_optimizer": path, "sub_group_size": 100_000}),
        ("optimizer-pipelined", {"offload_optimizer": pipelined, "sub_group_size": 1_000_000}),
        ("parameters", {"offload_param": parameters, "offload_optimizer": CPU, **streaming}),
        ("both", {"offload_param": parameters, "offload_optimizer": path, **streaming}),
    ]
    larger = {**LLAMA, "num_hidden_layers": 1, "hidden_size": 1024, "head_dim": 256, "intermediate_size": 2048}
    for name, section in variants:
        case = {**SMALL, "hf_config": {**larger, "vocab_size": 1100}, "name": name}
        yield {**case, **plain(3, zero_optimization=section)}


def with_nvme(case, directory):
    """The case with its files in a directory; what is written down keeps the placeholder."""
    return json.loads(json.dumps(case).replace('"NVME"', json.dumps(directory)))


def directory_bytes(directory):
    return sum(path.stat().st_size for path in pathlib.Path(directory).rglob("*") if path.is_file())


def offloaded(case, rank):
    case = with_nvme(case, case["directory"])
    answer = Rank(case, rank).run()
    return {**answer["result"], "files": directory_bytes(case["directory"])}


def trained(kind):
    return lambda case, rank: kind(case, rank).run()["result"]


KINDS = {
    "checkpointing": (checkpointing, trained(recipes.Checkpointing)),
    "teacher": (teacher, trained(recipes.Teacher)),
    "load": (load, files.load),
    "save": (save, lambda case, rank: files.Saver(case, rank).run()),
    "nvme": (nvme, offloaded),
}


@contextlib.contextmanager
def checkpoint(case):
    """The case with a checkpoint on disk where it loads one."""
    if "file_dtype" not in case:
        yield case
        return
    with tempfile.TemporaryDirectory(prefix="zeropilot-") as directory:
        located = {**case, "checkpoint": directory}
        written = ranks.run(files.write_checkpoint, {**located, "world": 1})
        if isinstance(written, dict):
            raise RuntimeError(written)
        yield located


def measure(kind):
    cases, work = KINDS[kind]
    for case in cases():
        with checkpoint(case) as located:
            answers = ranks.run(work, located)
        outcome = {"refused": answers} if isinstance(answers, dict) else {"ranks": answers}
        yield {"kind": kind, **case, **outcome}


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
    asked = sys.argv[1:] or list(KINDS)
    ranks.load_operators()
    if "nvme" in asked and not ranks.load_operators(["AsyncIO"]):
        sys.exit("the engine cannot build its asynchronous I/O: libaio's headers are missing")
    kept = [case for case in json.loads(FILE.read_text()) if case["kind"] not in asked] if FILE.exists() else []
    measured = kept + [case for kind in asked for case in measure(kind)]
    measured.sort(key=lambda case: list(KINDS).index(case["kind"]))
    FILE.write_text("[\n" + ",\n".join(json.dumps(case, separators=(",", ":")) for case in measured) + "\n]\n")


if __name__ == "__main__":
    main()
