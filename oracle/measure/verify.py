"""Measures a sample of the cases under `knowledge/measured` again and compares: the recorder against its predecessor.

    python -m measure.verify [cases] [seed]     in `oracle/`

Rest states have to be equal to the byte. Peaks of older runs may contain a tensor that gloo still held.
"""

import collections
import json
import pathlib
import random
import subprocess
import sys

MEASURED = pathlib.Path(__file__).parents[2] / "knowledge" / "measured"
SERVER = pathlib.Path(__file__).parents[1] / "measure_server.py"
NEAR = 2048

DECODER = {
    "hidden_size": "h", "num_attention_heads": "a", "num_key_value_heads": "k", "num_hidden_layers": "L",
    "intermediate_size": "i", "head_dim": "d", "max_position_embeddings": "npos",
}  # fmt: skip
NAMES = {
    "qwen2_moe": {**DECODER, "num_experts": "E", "num_experts_per_tok": "K", "moe_intermediate_size": "mi",
                  "shared_expert_intermediate_size": "si"},
    "qwen3_moe": {**DECODER, "num_experts": "E", "num_experts_per_tok": "K", "moe_intermediate_size": "mi"},
    "mixtral": {**DECODER, "num_local_experts": "E", "num_experts_per_tok": "K"},
    "deepseek_v3": {**{key: name for key, name in DECODER.items() if name != "d"}, "n_routed_experts": "E",
                    "num_experts_per_tok": "K", "moe_intermediate_size": "mi", "n_shared_experts": "ns",
                    "q_lora_rank": "ql", "kv_lora_rank": "kl", "qk_nope_head_dim": "dn", "qk_rope_head_dim": "dr",
                    "v_head_dim": "dv", "first_k_dense_replace": "fd", "n_group": "ng", "topk_group": "tg"},
    "gpt2": {"n_embd": "h", "n_head": "a", "n_layer": "L", "n_positions": "npos"},
    "opt": {"hidden_size": "h", "word_embed_proj_dim": "h", "num_attention_heads": "a", "num_hidden_layers": "L",
            "ffn_dim": "i", "max_position_embeddings": "npos"},
    "bloom": {"hidden_size": "h", "n_head": "a", "n_layer": "L"},
    "falcon": {"hidden_size": "h", "num_attention_heads": "a", "num_hidden_layers": "L"},
    "t5": {"d_model": "h", "d_ff": "i", "num_heads": "a", "d_kv": "d", "num_layers": "L"},
    "bert": {"hidden_size": "h", "num_attention_heads": "a", "num_hidden_layers": "L", "intermediate_size": "i",
             "max_position_embeddings": "npos"},
}  # fmt: skip
NAMES["gpt_neox"] = NAMES["bertcls"] = NAMES["bert"]


def config_json(family, shape, overrides):
    names = NAMES.get(family, DECODER)
    config = {key: shape[name] for key, name in names.items() if name in shape}
    config["model_type"] = {"gemma3": "gemma3_text", "bertcls": "bert"}.get(family, family)
    config["vocab_size"] = shape["v"]
    if family == "bertcls":
        config["architectures"] = ["BertForSequenceClassification"]
    if family == "t5":
        config["decoder_start_token_id"] = 0
    return {**config, **overrides}


def request(case):
    """An older case in the words of `case`."""
    if "model" in case:
        shape = case["model"]
        model = config_json("llama", shape, {"tie_word_embeddings": bool(shape.get("tie"))})
    else:
        model = config_json(case["family"], case["shape"], case["config_overrides"])
    kept = """world seq target_seq two_groups trainable_only checkpointing zero_init config attention lora
              input_require_grads""".split()
    asked = {"hf_config": model, **{key: case[key] for key in kept if case.get(key) is not None}}
    if case.get("family") == "bloom":
        asked["attention"] = "eager"
    return asked


def older_cases():
    for file in ("zero-memory-cases.json", "training.json"):
        cases = json.loads((MEASURED / file).read_text())
        runs = collections.defaultdict(list)
        for case in cases if isinstance(cases, list) else cases["cases"]:
            if "note" not in case:
                runs[case["name"], json.dumps(case["config"])].append(case)
        yield [sorted(run, key=lambda case: case["rank"]) for run in runs.values()]


def differences(case, ours):
    """Rest points that differ, and our peaks minus theirs. The family cases looked after the first backward pass."""
    moments = ["init", "after_step"] + (["after_backward"] if "model" in case else [])
    rest = {}
    for moment in moments:
        older, newer = case[moment].get, ours[moment].get
        keys = case[moment].keys() | ours[moment].keys()
        wrong = {key: [older(key, 0), newer(key, 0)] for key in keys if older(key, 0) != newer(key, 0)}
        if wrong:
            rest[moment] = wrong
    peaks = {name: ours["peak"][name] - case["peak"][name] for name in ("init", "forward", "backward", "step")}
    return rest, peaks


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    sample = [run for runs in older_cases() for run in draw.sample(runs, count // 2)]
    requests = "".join(json.dumps({"id": n, **request(run[0])}) + "\n" for n, run in enumerate(sample))
    command = [sys.executable, str(SERVER)]
    answers = subprocess.run(command, input=requests, capture_output=True, text=True, check=True).stdout
    totals = collections.Counter()
    for run, line in zip(sample, answers.splitlines()[1:]):
        answer = json.loads(line)
        if "error" in answer:
            print(f"{run[0]['name']}: {answer['error']} {answer['message'][:200]}")
            totals["refused"] += 1
            continue
        for case in run:
            ours = answer["ranks"][case["rank"]]
            rest, peaks = differences(case, ours)
            totals["rank-runs"] += 1
            totals["rest equal"] += not rest
            for name, error in peaks.items():
                totals[f"{name} equal"] += error == 0
                totals[f"{name} near"] += abs(error) <= NEAR
            misc = ours["misc"] - case["misc"]
            totals["misc equal"] += misc == 0
            if rest or misc or any(peaks.values()):
                print(f"{case['name']} rank {case['rank']}: {rest} {peaks} misc {misc}")
    print(dict(totals))


if __name__ == "__main__":
    main()
