"""The fixed sweep: `knowledge/measured/sweep.json`.

    python -m measure.sweep                 in `oracle/`: measure what is not in the file yet, and write it
    python -m measure.sweep --check [n]     measure n of the written cases (all by default) again and compare

Sets: `base` (every family in every stage), `option` (one option at a time on one model), `lora`, `drawn` (by
`draw` with a fixed seed). A case the engine refuses is named and left out.
"""

import json
import os
import pathlib
import random
import subprocess
import sys

from measure import draw
from measure.families import ATTENTION, FAMILIES

FILE = pathlib.Path(__file__).parents[2] / "knowledge" / "measured" / "sweep.json"
SERVER = pathlib.Path(__file__).parents[1] / "measure_server.py"
SEED = 20261115
DRAWN = 70

LLAMA = {
    "model_type": "llama", "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 12,
    "intermediate_size": 77, "num_hidden_layers": 2, "vocab_size": 503, "max_position_embeddings": 128,
    "tie_word_embeddings": False,
}  # fmt: skip


def merged(into, more):
    """`into` with the members of `more`, sections merged."""
    result = dict(into)
    for key, value in more.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both else value
    return result


def plain(stage, **more):
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 1,
        "optimizer": {"type": "AdamW", "params": {"lr": 0.001}},
        "zero_optimization": {"stage": stage, "reduce_bucket_size": 10_000, "allgather_bucket_size": 10_000},
        "bf16": {"enabled": True},
    }
    return {"config": merged(config, more), **({"zero_init": True} if stage == 3 else {})}


def base():
    for number, (family, build) in enumerate(FAMILIES.items()):
        model = build(random.Random(f"{family} {SEED}"))
        for stage in range(4):
            case = {"name": f"base-{family}-s{stage}", "set": "base", "family": family}
            case |= {"world": 2 + (number + stage) % 2, "seq": 16, "attention": model.attention}
            case |= {"hf_config": model.config, **plain(stage)}
            if family == "t5":
                case["target_seq"] = 9
            yield case


def fp32(config):
    return {key: value for key, value in config.items() if key != "bf16"}


def zero(**keys):
    return {"zero_optimization": keys}


CPU = {"device": "cpu", "pin_memory": True}
UNPINNED = {"device": "cpu", "pin_memory": False}
# name, stages, what the config gets, what the case gets
OPTIONS = [
    ("W1", (0, 1, 2, 3), {}, {"world": 1}),
    ("W3", (1, 2, 3), {}, {"world": 3}),
    ("W4", (1, 2, 3), {}, {"world": 4}),
    ("gas2", (0, 1, 2, 3), {"gradient_accumulation_steps": 2}, {}),
    ("gas4", (0, 1, 2, 3), {"gradient_accumulation_steps": 4}, {}),
    ("acc32", (1, 2, 3), {"data_types": {"grad_accum_dtype": "fp32"}}, {}),
    ("acc32-gas3", (1, 2, 3), {"data_types": {"grad_accum_dtype": "fp32"}, "gradient_accumulation_steps": 3}, {}),
    ("comm32", (0, 1, 2, 3), {"communication_data_type": "fp32"}, {}),
    ("overlap", (1, 2), zero(overlap_comm=True), {"world": 3}),
    ("scattered", (1, 2, 3), zero(contiguous_gradients=False), {"world": 3}),
    ("overlap-scattered", (1, 2), zero(overlap_comm=True, contiguous_gradients=False), {}),
    ("no-overlap", (3,), zero(overlap_comm=False), {}),
    ("no-reduce-scatter", (1, 2, 3), zero(reduce_scatter=False), {"world": 3}),
    ("rooted", (1, 2), zero(use_multi_rank_bucket_allreduce=False), {"world": 3}),
    ("round-robin", (1, 2), zero(round_robin_gradients=True), {"world": 3}),
    ("bucket-small", (1, 2, 3), zero(reduce_bucket_size=600), {}),
    ("bucket-default", (2, 3), zero(reduce_bucket_size=500_000_000), {}),
    ("optimizer-pinned", (1, 2, 3), zero(offload_optimizer=CPU), {}),
    ("optimizer-unpinned", (1, 2, 3), zero(offload_optimizer=UNPINNED), {"world": 3}),
    ("optimizer-gas2", (1, 2, 3), zero(offload_optimizer=CPU) | {"gradient_accumulation_steps": 2}, {}),
    ("optimizer-master16", (1, 2, 3), zero(offload_optimizer=CPU) | {"bf16": {"bf16_master_weights_and_grads": True}}, {}),
    ("states16", (1, 2, 3), {"bf16": {"bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}}, {}),
    ("parameters-pinned", (3,), zero(offload_param=CPU), {}),
    ("parameters-unpinned", (3,), zero(offload_param=UNPINNED), {}),
    ("both", (3,), zero(offload_param=CPU, offload_optimizer=CPU), {}),
    ("ratio", (3,), zero(sub_group_size=4000, offload_optimizer={**CPU, "ratio": 0.5}), {}),
    ("sub-groups", (3,), zero(sub_group_size=4000), {}),
    ("persist-0", (3,), zero(stage3_param_persistence_threshold=0), {}),
    ("persist-3000", (3,), zero(stage3_param_persistence_threshold=3000), {}),
    ("persist-model", (3,), zero(stage3_model_persistence_threshold=6000), {}),
    ("no-prefetch", (3,), zero(stage3_param_persistence_threshold=100, stage3_prefetch_bucket_size=0, stage3_max_reuse_distance=0), {}),
    ("some-prefetch", (3,), zero(stage3_param_persistence_threshold=100, stage3_prefetch_bucket_size=3000, stage3_max_reuse_distance=5000), {}),
    ("few-live", (3,), zero(stage3_param_persistence_threshold=100, stage3_max_live_parameters=6000), {}),
    ("hpz", (3,), zero(zero_hpz_partition_size=2), {"world": 4}),
    ("hpz-streaming", (3,), zero(zero_hpz_partition_size=2, stage3_param_persistence_threshold=0, stage3_max_reuse_distance=0), {"world": 4}),
    ("whole", (3,), {}, {"zero_init": False}),
    ("plain-linear", (3,), zero(memory_efficient_linear=False), {}),
    ("checkpointing", (0, 1, 2, 3), {}, {"checkpointing": True}),
    ("checkpointing-streaming", (3,), zero(stage3_param_persistence_threshold=0, stage3_max_reuse_distance=0), {"checkpointing": True}),
    ("tied", (0, 1, 2, 3), {}, {"hf_config": {**LLAMA, "tie_word_embeddings": True}}),
    ("eager", (2,), {}, {"attention": "eager"}),
    ("two-groups", (0, 1, 2, 3), {}, {"two_groups": True, "world": 3}),
    ("frozen", (0, 1, 2, 3), {}, {"trainable_only": ["layers.1", "norm"]}),
    ("built-16", (2, 3), {}, {"dtype": "bfloat16", "zero_init": False}),
    ("torch-adam", (0, 1, 2, 3), {"optimizer": {"params": {"torch_adam": True}}}, {}),
    ("sgd", (0, 2, 3), {"optimizer": {"type": "SGD", "params": {"lr": 0.001}}, "zero_allow_untested_optimizer": True}, {}),
    ("momentum", (2, 3), {"optimizer": {"type": "SGD", "params": {"momentum": 0.9}}, "zero_allow_untested_optimizer": True}, {}),
    ("adagrad", (0, 2, 3), {"optimizer": {"type": "Adagrad"}, "zero_allow_untested_optimizer": True}, {}),
    ("lion-host", (1, 2, 3), {"optimizer": {"type": "Lion"}, "zero_optimization": {"offload_optimizer": CPU}}, {}),
    ("adagrad-host", (1, 2, 3), {"optimizer": {"type": "Adagrad"}, "zero_optimization": {"offload_optimizer": CPU}}, {}),
]  # fmt: skip


def options():
    recipe = {"set": "option", "family": "llama", "seq": 16, "attention": "sdpa", "hf_config": LLAMA, "world": 2}
    for name, stages, config, case in OPTIONS:
        for stage in stages:
            yield {**recipe, "name": f"{name}-s{stage}", **plain(stage, **config), **case}
    for stage in range(4):
        half = plain(stage, fp16={"enabled": True, "loss_scale": 16})
        yield {**recipe, "name": f"fp16-s{stage}", **half, "config": fp32(half["config"])}
        whole = plain(stage)
        yield {**recipe, "name": f"fp32-s{stage}", **whole, "config": fp32(whole["config"])}


ADAPTERS = [
    ("llama", {"r": 4, "targets": ["q_proj", "v_proj"]}, {}),
    ("llama", {"r": 8, "targets": ATTENTION + ["gate_proj", "up_proj", "down_proj"], "dropout": 0.05}, {}),
    ("llama", {"r": 4, "targets": ATTENTION}, {"checkpointing": True, "input_require_grads": True}),
    ("llama", {"r": 4, "targets": ["q_proj", "v_proj"], "save": ["lm_head"], "autocast": False}, {"hf_config": LLAMA}),
    ("qwen2", {"r": 8, "targets": ATTENTION}, {}),
    ("gpt2", {"r": 4, "targets": ["c_attn"]}, {}),
    ("t5", {"r": 4, "targets": ["q", "v"]}, {}),
    ("bert", {"r": 4, "targets": ["query", "value"]}, {}),
    ("qwen3_moe", {"r": 4, "targets": ATTENTION}, {}),
]


def adapters():
    for number, (family, lora, more) in enumerate(ADAPTERS):
        model = FAMILIES[family](random.Random(f"{family} lora {SEED}"))
        for stage in (0, 2, 3):
            case = {"name": f"lora-{number}-{family}-s{stage}", "set": "lora", "family": family, "world": 2, "seq": 16}
            case |= {"attention": model.attention, "hf_config": model.config, "lora": lora}
            yield {**case, **plain(stage), **more}


def drawn():
    source = random.Random(SEED)
    for number in range(DRAWN):
        yield {"name": f"drawn-{number}", "set": "drawn", **draw.case(source)}


def answers(cases, engine=None):
    """Every case with the server's answer: that of the newest engine, or of the one in this directory."""
    surroundings = {**os.environ, "PYTHONPATH": str(engine)} if engine else None
    command = [sys.executable, str(SERVER)]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=surroundings)
    greeting = json.loads(server.stdout.readline())
    assert engine is None or greeting["deepspeed"] == engine.name, greeting
    for number, case in enumerate(cases):
        server.stdin.write(json.dumps({"id": number, **case}) + "\n")
        server.stdin.flush()
        yield case, json.loads(server.stdout.readline())
    server.stdin.close()
    server.wait()


def record(case, answer):
    """What is kept of an answer: not the names of parameters, not the steps before the steady one."""
    traffic = answer["traffic"]
    kept = {key: traffic[key] for key in ("build", "init", "steady_step") if traffic[key]}
    facts = {key: answer[key] for key in ("optimizer_class", "base_optimizer", "elements", "trainable_elements")}
    return {**case, **facts, "ranks": answer["ranks"], "traffic": kept}


MEASURED = ("optimizer_class", "base_optimizer", "elements", "trainable_elements", "ranks", "traffic")


def asked(case):
    """The request a written case answers."""
    return {key: value for key, value in case.items() if key not in MEASURED}


def all_cases():
    return json.loads(json.dumps([*base(), *options(), *adapters(), *drawn()]))


def write():
    kept = json.loads(FILE.read_text()) if FILE.exists() else []
    known = {json.dumps(asked(case)): case for case in kept}
    cases = all_cases()
    missing = [case for case in cases if json.dumps(case) not in known]
    for case, answer in answers(missing):
        if "error" in answer:
            print(f"refused {case['name']}: {answer['error']} {answer['message'][:300]}", file=sys.stderr)
        elif isinstance(answer["traffic"], list):
            print(f"left out {case['name']}: ranks sent different calls", file=sys.stderr)
        else:
            known[json.dumps(case)] = record(case, answer)
    written = [known[key] for key in map(json.dumps, cases) if key in known]
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in written)
    FILE.write_text(f"[\n{lines}\n]\n")
    print(f"{len(written)} cases", file=sys.stderr)


def check(count):
    written = json.loads(FILE.read_text())
    sample = random.sample(written, count) if count else written
    different = 0
    for (case, answer), before in zip(answers(map(asked, sample)), sample):
        now = answer if "error" in answer else record(case, answer)
        # As JSON text, since that is what is kept.
        if json.loads(json.dumps(now)) != before:
            different += 1
            print(f"different: {case['name']}")
            for old, new in zip(before["ranks"], now.get("ranks", [])):
                print("   ", {key: (old[key], new.get(key)) for key in old if old[key] != new.get(key)})
    print(f"{len(sample)} cases measured again, {different} different")
    return different


def main():
    if sys.argv[1:2] == ["--check"]:
        sys.exit(check(int(sys.argv[2]) if len(sys.argv) > 2 else 0) > 0)
    write()


if __name__ == "__main__":
    main()
