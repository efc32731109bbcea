"""Models that see or hear: small ones drawn, their images, and a batch of both.

A case of such a model has "images", the grid of each image of a micro batch as [frames, rows, columns] in patches
(towers with images of one size leave rows and columns 0), and "per_sequence", how many each sequence has.
"""

import torch

SEPARATE = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
# Tokens at the end of the vocabulary that stand for parts of an image.
SPECIAL = 4


def language(draw, **more):
    heads = draw.choice([2, 4, 6])
    width = draw.choice([8, 12, 16])
    return {
        "hidden_size": heads * width,
        "num_attention_heads": heads,
        "num_key_value_heads": draw.choice([n for n in (1, 2, heads) if heads % n == 0]),
        "intermediate_size": draw.choice([56, 88, 100]),
        "num_hidden_layers": draw.choice([1, 2, 3]),
        "vocab_size": draw.choice([211, 503, 640]),
        "max_position_embeddings": 512,
        **more,
    }


def marked(config):
    """With the tokens of images inside the vocabulary."""
    last = config["text_config"]["vocab_size"]
    names = ("image_token_id", "video_token_id", "vision_start_token_id", "vision_end_token_id")
    return config | {name: last - 1 - place for place, name in enumerate(names)}


def with_streams(text):
    """Rotary positions in three streams: time, row and column."""
    width = text.get("head_dim", text["hidden_size"] // text["num_attention_heads"]) // 2
    row = width // 3
    text["rope_parameters"] = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [width - 2 * row, row, row],
    }
    return text


def packed_tower(draw, text, **more):
    heads = draw.choice([2, 4])
    return {
        "depth": draw.choice([1, 2, 3]),
        "num_heads": heads,
        "hidden_size": heads * draw.choice([8, 12, 16]),
        "intermediate_size": draw.choice([40, 80, 100]),
        "patch_size": draw.choice([4, 8]),
        "out_hidden_size": text["hidden_size"],
        **more,
    }


def qwen2_vl(draw):
    text = with_streams(language(draw))
    vision = packed_tower(draw, text)
    vision |= {"embed_dim": vision.pop("hidden_size"), "hidden_size": vision.pop("out_hidden_size"), "mlp_ratio": 2}
    vision.pop("intermediate_size")
    config = {"model_type": "qwen2_vl", "text_config": text, "vision_config": vision}
    return marked(config | {"tie_word_embeddings": draw.random() < 0.3})


def qwen2_5_vl(draw):
    text = with_streams(language(draw))
    vision = packed_tower(draw, text, window_size=draw.choice([16, 32]))
    vision["fullatt_block_indexes"] = [n for n in range(vision["depth"]) if draw.random() < 0.5]
    config = {"model_type": "qwen2_5_vl", "text_config": text, "vision_config": vision}
    return marked(config | {"tie_word_embeddings": draw.random() < 0.3})


def qwen3_vl(draw):
    text = with_streams(language(draw, head_dim=draw.choice([8, 16])))
    vision = packed_tower(draw, text, num_position_embeddings=64)
    blocks = min(vision["depth"], text["num_hidden_layers"])
    vision["deepstack_visual_indexes"] = [n for n in range(blocks) if draw.random() < 0.6]
    config = {"model_type": "qwen3_vl", "text_config": text, "vision_config": vision}
    return marked(config | {"tie_word_embeddings": draw.random() < 0.3})


def patch_tower(draw, side):
    heads = draw.choice([2, 4])
    return {
        "num_hidden_layers": draw.choice([1, 2, 3]),
        "num_attention_heads": heads,
        "hidden_size": heads * draw.choice([8, 12, 16]),
        "intermediate_size": draw.choice([40, 80, 100]),
        "patch_size": 8,
        "image_size": side,
    }


def gemma3_vision(draw):
    text = language(draw, head_dim=draw.choice([8, 16]), sliding_window=draw.choice([8, 64]))
    text["query_pre_attn_scalar"] = text["head_dim"]
    vision = patch_tower(draw, draw.choice([32, 64])) | {"vision_use_head": draw.random() < 0.3}
    config = {"model_type": "gemma3", "text_config": text, "vision_config": vision, "mm_tokens_per_image": 4}
    return config | {"image_token_index": text["vocab_size"] - 1}


def internvl(draw):
    text = language(draw, model_type=draw.choice(["qwen2", "qwen3", "llama"]))
    side = draw.choice([32, 48])
    vision = patch_tower(draw, side)
    vision |= {"patch_size": [8, 8], "image_size": [side, side], "attention_bias": draw.random() < 0.5}
    vision |= {"use_qk_norm": draw.random() < 0.3, "norm_type": draw.choice(["layer_norm", "rms_norm"])}
    config = {"model_type": "internvl", "text_config": text, "vision_config": vision}
    return config | {"tie_word_embeddings": draw.random() < 0.3, "image_token_id": text["vocab_size"] - 1}


def whisper(draw):
    heads = draw.choice([2, 4])
    return {
        "model_type": "whisper",
        "d_model": heads * draw.choice([8, 12, 16]),
        "encoder_attention_heads": heads,
        "decoder_attention_heads": heads,
        "encoder_ffn_dim": draw.choice([40, 88]),
        "decoder_ffn_dim": draw.choice([40, 100]),
        "encoder_layers": draw.choice([1, 2, 3]),
        "decoder_layers": draw.choice([1, 2, 3]),
        "vocab_size": draw.choice([211, 503]),
        "num_mel_bins": draw.choice([8, 20]),
        "max_source_positions": draw.choice([20, 50]),
        "max_target_positions": 64,
        "decoder_start_token_id": 1,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 1,
    }


# With what LoRA may target: names of language layers hit layers of some towers too.
TOWERS = {
    "qwen2_vl": (qwen2_vl, SEPARATE),
    "qwen2_5_vl": (qwen2_5_vl, [*SEPARATE, "qkv"]),
    "qwen3_vl": (qwen3_vl, [*SEPARATE, "linear_fc1"]),
    "gemma3_vision": (gemma3_vision, SEPARATE),
    "internvl": (internvl, SEPARATE),
    "whisper": (whisper, ["q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"]),
}


def is_packed(config):
    return config["model_type"].startswith("qwen")


def draw_images(draw, config, sequences):
    """Grids of the images of a micro batch, and how many each sequence has."""
    counts = [draw.choice([1, 1, 2]) for _ in range(sequences)]
    side = lambda: 2 * draw.randint(1, 4)
    grid = lambda: [1, side(), side()] if is_packed(config) else [1, 0, 0]
    return [grid() for _ in range(sum(counts))], counts


def tokens_of(config, grid):
    vision = config["vision_config"]
    if is_packed(config):
        return grid[0] * grid[1] * grid[2] // 4
    if config["model_type"] == "gemma3":
        return config["mm_tokens_per_image"]
    return (vision["image_size"][0] // vision["patch_size"][0] // 2) ** 2


def longest(config, images, counts):
    """Tokens of the images of the sequence with the most of them, and one before each."""
    left = iter(images)
    return max(sum(1 + tokens_of(config, next(left)) for _ in range(count)) for count in counts)


def pixels(config, images, generator):
    vision = config["vision_config"]
    if is_packed(config):
        patches = sum(t * h * w for t, h, w in images)
        return torch.randn(patches, 3 * 2 * vision["patch_size"] ** 2, generator=generator)
    side = vision["image_size"]
    side = side[0] if isinstance(side, list) else side
    return torch.randn(len(images), 3, side, side, generator=generator)


def image_token(config):
    return config.get("image_token_id", config.get("image_token_index"))


def batch(case, ids, dtype, generator):
    """What the model is given beside the labels; `ids` are drawn from the vocabulary."""
    config = case["hf_config"]
    if config["model_type"] == "whisper":
        shape = (len(ids), config["num_mel_bins"], 2 * config["max_source_positions"])
        return {"input_features": torch.randn(*shape, generator=generator).to(dtype), "labels": ids}
    ids = ids.clamp(max=config["text_config"]["vocab_size"] - 1 - SPECIAL)
    left = iter(case["images"])
    for row, count in zip(ids, case["per_sequence"]):
        begin = 0
        for _ in range(count):
            end = begin + 1 + tokens_of(config, next(left))
            row[begin + 1 : end] = image_token(config)
            begin = end
    given = {"input_ids": ids, "labels": ids, "pixel_values": pixels(config, case["images"], generator)}
    kinds = (ids == image_token(config)).int()
    if is_packed(config):
        return given | {"image_grid_thw": torch.tensor(case["images"]), "mm_token_type_ids": kinds}
    if config["model_type"] == "gemma3":
        return given | {"token_type_ids": kinds.long()}
    return given
