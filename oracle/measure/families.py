"""Small models of each family, drawn: the config.json, what LoRA may target, and what the family asks of a case."""

import dataclasses


@dataclasses.dataclass
class Drawn:
    config: dict
    targets: list
    attention: str = "sdpa"
    # Names of the experts' parts, which PEFT takes together for the stacked tensors.
    expert_targets: tuple = ()


def heads(draw):
    """Heads, key-value heads and head size."""
    count = draw.choice([2, 4, 6])
    shared = draw.choice([n for n in (1, 2, count) if count % n == 0])
    return count, shared, draw.choice([8, 12, 16])


def decoder(draw, model_type, **more):
    a, k, d = heads(draw)
    return {
        "model_type": model_type,
        "hidden_size": a * d if draw.random() < 0.7 else a * 10,
        "num_attention_heads": a,
        "num_key_value_heads": k,
        "head_dim": d,
        "intermediate_size": draw.choice([57, 88, 100]),
        "num_hidden_layers": draw.choice([1, 2, 2, 3, 4]),
        "vocab_size": draw.choice([211, 503, 640]),
        "max_position_embeddings": 128,
        "tie_word_embeddings": draw.random() < 0.3,
        **more,
    }


SEPARATE = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ATTENTION = SEPARATE[:4]


def llama(draw):
    return Drawn(decoder(draw, "llama"), SEPARATE)


def mistral(draw):
    return Drawn(decoder(draw, "mistral", sliding_window=draw.choice([None, None, 8])), SEPARATE)


def qwen2(draw):
    config = decoder(draw, "qwen2")
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")
    return Drawn(config, SEPARATE)


def qwen3(draw):
    return Drawn(decoder(draw, "qwen3"), SEPARATE)


def gemma2(draw):
    config = decoder(draw, "gemma2", tie_word_embeddings=True, sliding_window=64)
    config["query_pre_attn_scalar"] = config["head_dim"]
    return Drawn(config, SEPARATE, "eager")


def gemma3(draw):
    config = decoder(draw, "gemma3_text", tie_word_embeddings=True, sliding_window=64)
    config["query_pre_attn_scalar"] = config["head_dim"]
    return Drawn(config, SEPARATE)


def phi3(draw):
    config = decoder(draw, "phi3", pad_token_id=0, original_max_position_embeddings=128)
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")
    return Drawn(config, ["qkv_proj", "o_proj", "gate_up_proj", "down_proj"])


def dropped(draw, *names):
    """The same dropout under all names, in one draw of four."""
    return dict.fromkeys(names, 0.1 if draw.random() < 0.25 else 0.0)


def gpt2(draw):
    a, _, d = heads(draw)
    config = {
        "model_type": "gpt2", "n_embd": a * d, "n_head": a, "n_layer": draw.choice([1, 2, 3]),
        "n_positions": 64, "vocab_size": draw.choice([211, 503, 640]), "bos_token_id": 1, "eos_token_id": 1,
        **dropped(draw, "attn_pdrop", "embd_pdrop", "resid_pdrop"),
    }  # fmt: skip
    return Drawn(config, ["c_attn", "c_proj", "c_fc"])


def encoder_shape(draw, model_type):
    a, _, d = heads(draw)
    return {
        "model_type": model_type, "hidden_size": a * d, "num_attention_heads": a,
        "num_hidden_layers": draw.choice([1, 2, 3]), "vocab_size": draw.choice([211, 503, 640]),
    }  # fmt: skip


def gpt_neox(draw):
    config = encoder_shape(draw, "gpt_neox")
    config |= {"intermediate_size": draw.choice([88, 100, 160]), "max_position_embeddings": 64}
    config |= {"tie_word_embeddings": draw.random() < 0.3}
    config |= dropped(draw, "hidden_dropout", "attention_dropout")
    return Drawn(config, ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"])


def opt(draw):
    config = encoder_shape(draw, "opt")
    config |= {"ffn_dim": draw.choice([88, 100, 160]), "max_position_embeddings": 64}
    config |= {"word_embed_proj_dim": config["hidden_size"]}
    config |= dropped(draw, "dropout", "attention_dropout")
    return Drawn(config, ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"])


def bloom(draw):
    config = encoder_shape(draw, "bloom")
    config |= {"n_head": config.pop("num_attention_heads"), "n_layer": config.pop("num_hidden_layers")}
    config |= dropped(draw, "hidden_dropout", "attention_dropout")
    return Drawn(config, ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"], "eager")


def falcon(draw):
    config = encoder_shape(draw, "falcon")
    config |= {"bos_token_id": 1, "eos_token_id": 1, **dropped(draw, "hidden_dropout", "attention_dropout")}
    return Drawn(config, ["query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"])


def t5(draw):
    a, _, d = heads(draw)
    config = {
        "model_type": "t5", "d_model": draw.choice([32, 48, 64]), "d_ff": draw.choice([88, 100]), "num_heads": a,
        "d_kv": d, "num_layers": draw.choice([1, 2, 3]), "vocab_size": draw.choice([211, 503, 640]),
        "feed_forward_proj": draw.choice(["relu", "gated-gelu"]), "tie_word_embeddings": draw.random() < 0.6,
        "decoder_start_token_id": 0, **dropped(draw, "dropout_rate"),
    }  # fmt: skip
    return Drawn(config, ["q", "k", "v", "o", "wo"])


def bert(draw):
    config = encoder_shape(draw, "bert")
    config |= {"intermediate_size": draw.choice([88, 100, 160]), "max_position_embeddings": 64}
    config |= dropped(draw, "hidden_dropout_prob", "attention_probs_dropout_prob")
    if draw.random() < 0.25:
        config["architectures"] = ["BertForSequenceClassification"]
    return Drawn(config, ["query", "key", "value"])


def experts(draw, counted, size="moe_intermediate_size"):
    return {counted: draw.choice([4, 6, 8]), "num_experts_per_tok": draw.choice([1, 2, 3]), size: draw.choice([24, 40])}


def aligned(config):
    """Grouped matrix products want rows of a multiple of 16 bytes."""
    config["hidden_size"] = -(-config["hidden_size"] // 8) * 8
    return config


def mixtral(draw):
    more = experts(draw, "num_local_experts", "intermediate_size")
    config = aligned(decoder(draw, "mixtral", **more, sliding_window=None))
    return Drawn(config, ATTENTION, expert_targets=("w1", "w2", "w3"))


def qwen2_moe(draw):
    more = experts(draw, "num_experts") | {"shared_expert_intermediate_size": draw.choice([40, 56])}
    config = decoder(draw, "qwen2_moe", **more, norm_topk_prob=draw.random() < 0.5)
    config["hidden_size"] = config["num_attention_heads"] * config.pop("head_dim")
    return Drawn(config, ATTENTION, expert_targets=tuple(SEPARATE[4:]))


def qwen3_moe(draw):
    config = decoder(draw, "qwen3_moe", **experts(draw, "num_experts"), norm_topk_prob=draw.random() < 0.5)
    return Drawn(aligned(config), ATTENTION, expert_targets=tuple(SEPARATE[4:]))


def deepseek_v3(draw):
    config = aligned(decoder(draw, "deepseek_v3", **experts(draw, "n_routed_experts")))
    config.pop("head_dim")
    config |= {
        "num_key_value_heads": config["num_attention_heads"], "n_routed_experts": 8, "n_group": draw.choice([1, 2, 4]),
        "topk_group": 1, "num_experts_per_tok": 2, "n_shared_experts": draw.choice([1, 2]), "q_lora_rank": 24,
        "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": draw.choice([8, 16]),
        "first_k_dense_replace": draw.choice([0, 1]),
    }  # fmt: skip
    return Drawn(config, ["q_a_proj", "q_b_proj", "kv_b_proj", "o_proj"], expert_targets=tuple(SEPARATE[4:]))


FAMILIES = {
    family.__name__: family
    for family in (
        llama, mistral, qwen2, qwen3, gemma2, gemma3, phi3, gpt2, gpt_neox, opt, bloom, falcon, t5, bert, mixtral,
        qwen2_moe, qwen3_moe, deepseek_v3,
    )
}  # fmt: skip
