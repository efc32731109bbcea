"""Cases drawn at random: a small model of some family, a DeepSpeed config the engine should take, a recipe.

    python -m measure.draw [count] [seed] [kind]         in `oracle/`: one case per line; the seed goes to standard error

With "towers" the models see or hear, with "mixtures" they have experts, with "split" ranks share their layers.

Some draws the engine refuses all the same (a client optimizer it does not know, a combination it asserts on); that is
an answer too.
"""

import json
import random
import sys

from measure import towers
from measure.families import FAMILIES


def chance(draw, probability):
    return draw.random() < probability


def precision(draw, offload):
    """The sections that decide how many bytes an element has."""
    kind = draw.choice(["bf16", "bf16", "bf16", "fp16", "fp32"])
    if kind == "fp32":
        return {}
    section = {"enabled": True}
    if kind == "fp16":
        section["loss_scale"] = 16
        if offload and chance(draw, 0.15):
            section["fp16_master_weights_and_grads"] = True
    elif chance(draw, 0.2):
        section["bf16_master_weights_and_grads"] = True
        section["bf16_optimizer_states"] = not offload or chance(draw, 0.5)
    config = {kind: section}
    if chance(draw, 0.25):
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    if chance(draw, 0.1):
        config["communication_data_type"] = "fp32"
    return config


def optimizer(draw, offload):
    kinds = ["AdamW"] * 8 + ["torch", "SGD", "Adagrad"] + (["Lion"] if offload else [])
    kind = draw.choice(kinds)
    if kind == "torch":
        return {"optimizer": {"type": "AdamW", "params": {"lr": 0.001, "torch_adam": True}}}
    section = {"optimizer": {"type": kind, "params": {"lr": 0.0001}}}
    if kind == "SGD" and chance(draw, 0.5):
        section["optimizer"]["params"]["momentum"] = 0.9
    if kind in ("SGD", "Adagrad"):
        section["zero_allow_untested_optimizer"] = True
    return section


def buckets(draw, stage):
    zero = {
        "stage": stage,
        "reduce_bucket_size": draw.choice([500, 3000, 10_000, 40_000, 300_000]),
        "allgather_bucket_size": 10_000,
    }
    for key, probability in (("overlap_comm", 0.5), ("contiguous_gradients", 0.3), ("reduce_scatter", 0.15)):
        if chance(draw, probability):
            zero[key] = chance(draw, 0.5) if key == "overlap_comm" else False
    if stage in (1, 2) and chance(draw, 0.2):
        zero["round_robin_gradients"] = True
    return zero


def stage3(draw, world):
    zero = {
        "stage3_param_persistence_threshold": draw.choice([0, 100, 3000, 100_000]),
        "stage3_prefetch_bucket_size": draw.choice([0, 500, 5000, 50_000_000]),
        "stage3_max_reuse_distance": draw.choice([0, 3000, 20_000, 1_000_000_000]),
        "stage3_max_live_parameters": draw.choice([6000, 30_000, 1_000_000_000]),
    }
    zero = {key: value for key, value in zero.items() if chance(draw, 0.7)}
    if chance(draw, 0.3):
        zero["sub_group_size"] = draw.choice([2000, 8000])
    if chance(draw, 0.15):
        zero["stage3_model_persistence_threshold"] = draw.choice([200, 5000])
    if world % 2 == 0 and chance(draw, 0.2):
        zero["zero_hpz_partition_size"] = 2
    if chance(draw, 0.25):
        zero["offload_param"] = {"device": "cpu", "pin_memory": chance(draw, 0.5)}
    return zero


def zero(draw, stage, world):
    section = buckets(draw, stage)
    if stage == 3:
        section |= stage3(draw, world)
    if stage > 0 and chance(draw, 0.3):
        section["offload_optimizer"] = {"device": "cpu", "pin_memory": chance(draw, 0.5)}
        if stage == 3 and "sub_group_size" in section and chance(draw, 0.5):
            section["offload_optimizer"]["ratio"] = draw.choice([0.3, 0.5, 0.8])
    return section


OWN_HEAD = ("llama", "mistral", "qwen2", "qwen3")


def lora(draw, model, case):
    chosen = draw.sample(model.targets, draw.randint(1, len(model.targets)))
    adapters = {"r": draw.choice([2, 4, 8]), "targets": sorted(chosen, key=model.targets.index)}
    if model.expert_targets and chance(draw, 0.6):
        adapters["targets"] = draw.choice(["all-linear", [*adapters["targets"], *model.expert_targets]])
    elif chance(draw, 0.2):
        adapters["dropout"] = 0.05
    own_head = model.config["model_type"] in OWN_HEAD and not model.config["tie_word_embeddings"]
    if own_head and chance(draw, 0.3):
        adapters |= {"save": ["lm_head"], "autocast": False}
    elif chance(draw, 0.2):
        adapters["autocast"] = False
    return adapters


def leaf_modules(draw, config):
    """Feed-forward parts or attention parts by their names."""
    layer = draw.randrange(config.get("num_hidden_layers") or config.get("n_layer") or config.get("num_layers"))
    named = [f"{before}{layer}.mlp" for before in ("model.layers.", "transformer.h.", "base_model.model.model.layers.")]
    return draw.choice([{"name_suffixes": ["mlp"]}, {"name_suffixes": ["self_attn", "mlp.experts"]}, {"names": named}])


def case(draw, family=None, stage=None, adapted=0.25, leaves=0.15):
    """One case. What is not drawn is what the engine or Transformers take by default."""
    family = family or draw.choice(list(FAMILIES))
    stage = draw.choice([0, 1, 2, 2, 3, 3, 3]) if stage is None else stage
    world = draw.choice([1, 2, 2, 3, 4])
    model = FAMILIES[family](draw)
    section = zero(draw, stage, world)
    offload = "offload_optimizer" in section
    config = {
        "train_micro_batch_size_per_gpu": draw.choice([1, 1, 2, 3]),
        "gradient_accumulation_steps": draw.choice([1, 1, 2, 3, 4]),
        **optimizer(draw, offload),
        "zero_optimization": section,
        **precision(draw, offload),
    }
    if stage == 0:
        config.pop("data_types", None)
    if stage == 3 and chance(draw, leaves):
        section["leaf_module"] = leaf_modules(draw, model.config)
    if chance(draw, 0.3):
        config["gradient_clipping"] = draw.choice([0.0, 0.5])
    drawn = {
        "family": family, "world": world, "seq": draw.choice([7, 12, 16, 24]), "attention": model.attention,
        "hf_config": model.config, "config": config,
    }  # fmt: skip
    if family == "t5":
        drawn["target_seq"] = draw.choice([5, 12, drawn["seq"]])
    if stage == 3 and chance(draw, 0.8):
        drawn["zero_init"] = True
    if chance(draw, adapted):
        drawn["lora"] = lora(draw, model, drawn)
    if chance(draw, 0.3):
        drawn["checkpointing"] = True
        if "lora" in drawn:
            drawn["input_require_grads"] = True
    return drawn


def mixture_case(draw):
    return case(draw, draw.choice(["mixtral", "qwen2_moe", "qwen3_moe", "deepseek_v3"]), adapted=0.6, leaves=0.4)


def split_case(draw):
    """A case whose ranks share layers: every width can be divided by four."""
    drawn = case(draw, draw.choice(OWN_HEAD), draw.choice([0, 1, 2, 2]), adapted=0)
    model = drawn["hf_config"]
    heads = draw.choice([4, 8])
    width = model.get("head_dim", 8)
    model |= {
        "num_attention_heads": heads, "num_key_value_heads": draw.choice([4, heads]),
        "hidden_size": heads * width, "intermediate_size": draw.choice([56, 88, 100]),
        "vocab_size": draw.choice([212, 504, 640]),
    }  # fmt: skip
    drawn["world"] = draw.choice([2, 4, 4])
    drawn["config"]["tensor_parallel"] = {"autotp_size": draw.choice([2, drawn["world"]])}
    if chance(draw, 0.3):
        drawn["config"]["tensor_parallel"]["vocab_parallel_lm_head"] = True
    return drawn


def seeing_case(draw, family=None, stage=None):
    """A case of a model that sees or hears."""
    family = family or draw.choice(list(towers.TOWERS))
    build, targets = towers.TOWERS[family]
    config = build(draw)
    # The other family only lends its place; stages, precisions and recipes are drawn as for any model.
    drawn = case(draw, "llama", stage, leaves=0)
    for key in ("lora", "input_require_grads", "zero_init"):
        drawn.pop(key, None)
    drawn |= {"family": family, "hf_config": config, "seq": draw.choice([12, 16, 24])}
    if family != "whisper":
        sequences = drawn["config"]["train_micro_batch_size_per_gpu"]
        images, counts = towers.draw_images(draw, config, sequences)
        drawn |= {"images": images, "per_sequence": counts}
        drawn["seq"] = towers.longest(config, images, counts) + draw.choice([3, 7, 12])
    kind = draw.choice(["full", "full", "frozen", "lora"])
    if kind == "frozen":
        drawn["frozen"] = ["model.encoder"] if family == "whisper" else ["model.visual", "model.vision_tower"]
    if kind == "lora":
        chosen = draw.sample(targets, draw.randint(1, len(targets)))
        drawn["lora"] = {"r": draw.choice([2, 4]), "targets": sorted(chosen, key=targets.index)}
    if drawn.get("checkpointing"):
        drawn["input_require_grads"] = family != "whisper"
    return drawn


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    print(f"seed {seed}", file=sys.stderr)
    draw = random.Random(seed)
    kinds = {"towers": seeing_case, "mixtures": mixture_case, "split": split_case}
    drawn = kinds.get(sys.argv[3] if len(sys.argv) > 3 else "text", case)
    for number in range(count):
        print(json.dumps({"id": number, "name": f"R{seed}-{number}", **drawn(draw)}))


if __name__ == "__main__":
    main()
