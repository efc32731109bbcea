"""Small configs of every type of model that transformers knows: the class's own defaults, with sizes that cost little."""

import dataclasses
import json

from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

HIDDEN, LAYERS, HEADS, KV_HEADS, INNER, VOCABULARY = 192, 4, 6, 2, 512, 1000

SIZES = [
    (HIDDEN, "hidden_size n_embd d_model n_embed embedding_size"),
    (LAYERS, "num_hidden_layers n_layer num_layers n_layers encoder_layers decoder_layers"),
    (HEADS, """num_attention_heads n_head num_heads n_heads encoder_attention_heads decoder_attention_heads
              linear_num_value_heads"""),
    (KV_HEADS, "num_key_value_heads num_kv_heads linear_num_key_heads"),
    (INNER, "intermediate_size ffn_dim n_inner d_ff encoder_ffn_dim decoder_ffn_dim ffn_hidden_size mlp_hidden_size"),
    (VOCABULARY, "vocab_size"),
    (HIDDEN // HEADS, "head_dim d_kv linear_key_head_dim linear_value_head_dim mamba_d_head"),
    (8, "num_experts num_local_experts n_routed_experts moe_num_experts"),
    (2, "num_experts_per_tok moe_k moe_topk"),
    (128, "moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size"),
    (1, "n_group topk_group first_k_dense_replace n_shared_experts moe_num_shared_experts mamba_n_groups n_groups"),
    (16, "mamba_d_state state_size mamba_chunk_size chunk_size qk_nope_head_dim qk_rope_head_dim v_head_dim rotary_dim"),
    (2 * HEADS, "mamba_n_heads"),
    (2 * HIDDEN, "mamba_d_ssm"),
    (64, "kv_lora_rank q_lora_rank"),
    (512, "max_position_embeddings n_positions"),
]
SIZE_OF = {key: size for size, keys in SIZES for key in keys.split()}

# Sizes that must fit others in ways of their own.
SPECIAL = {
    "mamba2": {"num_heads": 2 * HEADS, "head_dim": HIDDEN // HEADS},
    "gpt_neo": {"attention_types": [[["global"], LAYERS]], "num_layers": LAYERS},
}


def types():
    return sorted(modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)


def arguments(config_class):
    names = [field.name for field in dataclasses.fields(config_class)]
    return {name: SIZE_OF[name] for name in names if name in SIZE_OF}


def small(model_type):
    """The config object of a type, small."""
    config_class = CONFIG_MAPPING[model_type]
    values = {**arguments(config_class), **SPECIAL.get(model_type, {})}
    if "kv_lora_rank" in values and "num_key_value_heads" in values:
        # Attention through a latent has as many of either.
        values["num_key_value_heads"] = HEADS
    for field in dataclasses.fields(config_class):
        default = field.default
        if field.name.endswith("_token_id") and isinstance(default, int) and default >= VOCABULARY:
            values[field.name] = 0
    parts = getattr(config_class, "sub_configs_defaults", None) or config_class.sub_configs
    if "text_config" in parts:
        text = parts["text_config"]
        if dataclasses.is_dataclass(text):
            values["text_config"] = {"model_type": text.model_type, **arguments(text)}
    return config_class(**values)


def as_file(config, class_name):
    """What `config.json` of a checkpoint would hold."""
    written = json.loads(json.dumps(config.to_dict(), default=str), parse_constant=lambda infinite: None)
    written["architectures"] = [class_name]
    return written
