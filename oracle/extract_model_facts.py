"""What transformers and PEFT know about model families, as data: `knowledge/models/families.json`.

    python oracle/extract_model_facts.py > knowledge/models/families.json

For every family of `FAMILIES`: the classes its models are built with, the default of every config key that can
change a shape or adds dropout, the other names of config keys, and what `peft.LoraConfig` targets when no target is named.
A family of `COMPOSITES` also has `sections`: the sub-configs of its config, the class each is read with, and what stands in
for one that is left out. `parts` has the defaults and other names of those classes that are no family.
"""

import dataclasses
import json

import peft
import transformers
from peft.utils import constants
from peft.utils import transformers_weight_conversion as conversion
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

FAMILIES = """
    apertus arcee bert bloom cohere cohere2 deepseek_v2 deepseek_v3 dots1 ernie4_5 ernie4_5_moe exaone4 falcon
    falcon_h1 gemma gemma2 gemma3_text glm glm4 glm4_moe gpt2 gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite
    granitemoe granitemoehybrid helium hunyuan_v1_dense lfm2 llama llama4_text mamba2 minimax_m2 ministral3 mistral
    mixtral modernbert mt5 nemotron olmo olmo2 olmo3 olmoe opt phi phi3 phimoe qwen2 qwen2_moe qwen3
    qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next roberta seed_oss smollm3 stablelm starcoder2 t5 whisper
    xlm-roberta
""".split()

# Models that see or hear: a config with sub-configs.
COMPOSITES = """
    gemma3 glm4v idefics3 internvl llama4 llava llava_next llava_onevision mistral3 mllama paligemma qwen2_5_vl
    qwen2_audio qwen2_vl qwen3_vl qwen3_vl_moe smolvlm
""".split()

# Towers that a config may name instead of the default one.
TOWERS = ["clip_vision_model", "pixtral", "siglip_vision_model"]

# Text models inside others, with the shapes of another family and defaults of their own.
TEXT_PARTS = {
    "qwen2_vl_text": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe_text": "qwen3_moe",
}

# Names of older files that a config class replaces itself, outside of its `attribute_map`.
OLDER_NAMES = {"lfm2": {"block_ff_dim": "intermediate_size", "tie_embedding": "tie_word_embeddings"}}

ENCODERS = {"bert", "roberta", "modernbert", "xlm-roberta"}

LANGUAGE_MODELS = (
    modeling_auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
)

# Keys of running and of generation; none of them is read when a module is built.
IRRELEVANT = {
    "architectures", "bad_words_ids", "chunk_size_feed_forward", "classifier_activation", "classifier_pooling",
    "dtype", "feed_forward_proj_act", "gradient_checkpointing", "hidden_act", "hidden_activation", "id2label",
    "is_encoder_decoder", "label2id", "output_hidden_states", "output_router_logits", "pretraining_tp",
    "problem_type", "return_dict", "scoring_func", "transformers_version", "use_cache", "use_return_dict",
    "activation_function", "position_embedding_type", "summary_type", "summary_activation", "topk_method",
    "rope_parameters", "suppress_tokens", "begin_suppress_tokens", "reference_compile",
}  # fmt: skip

# Keys that are neither numbers nor switches and decide about shapes or sizes all the same.
SHAPING = {"downsample_ratio", "feed_forward_proj", "norm_type", "pixel_shuffle_ratio", "vision_feature_select_strategy"}

SECTIONS = {"audio_config", "text_config", "vision_config"}


def is_numbers(value):
    return isinstance(value, (list, tuple)) and all(type(item) is int for item in value)


def defaults(config_class):
    found = {}
    for field in dataclasses.fields(config_class):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name in IRRELEVANT | SECTIONS or field.name.endswith(("_token_id", "_token_index")):
            continue
        if "drop" in field.name and isinstance(default, (int, float)):
            # Dropout adds no parameter, but a tensor to every place it works at.
            found[field.name] = float(default)
        elif default is None or isinstance(default, (bool, int)) or field.name in SHAPING or is_numbers(default):
            found[field.name] = default
    return found


def sections(config_class):
    """By key: the class of the sub-config, whether a file may name another one or keep its keys at the top, and the keys
    of one that is left out."""
    flat = config_class(num_hidden_layers=7).text_config.num_hidden_layers == 7
    return {
        key: {
            "model_type": spec.model_type,
            "replaceable": not issubclass(spec.config_class, transformers.PreTrainedConfig),
            "flat": flat and key == "text_config",
            "left_out": {
                name: value
                for name, value in spec.init_kwargs.items()
                if isinstance(value, int) and name not in IRRELEVANT
            },
        }
        for key, spec in config_class.sub_configs_defaults.items()
        if key in SECTIONS
    }


def language_model_class(model_type):
    if model_type in COMPOSITES:
        return modeling_auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES[model_type]
    mappings = LANGUAGE_MODELS[::-1] if model_type in ENCODERS else LANGUAGE_MODELS
    return next(mapping[model_type] for mapping in mappings if model_type in mapping)


def config(config_class):
    older = OLDER_NAMES.get(config_class.model_type, {})
    return {"defaults": defaults(config_class), "aliases": {**config_class.attribute_map, **older}}


def parts(families):
    inner = {
        section["model_type"] for model_type in COMPOSITES for section in families[model_type]["sections"].values()
    }
    return {model_type: config(CONFIG_MAPPING[model_type]) for model_type in inner.union(TOWERS) - families.keys()}


def family(model_type):
    config_class = CONFIG_MAPPING[model_type]
    model_type = TEXT_PARTS.get(model_type, model_type)
    return {
        "language_model_class": language_model_class(model_type),
        "base_class": None if model_type in COMPOSITES else modeling_auto.MODEL_MAPPING_NAMES.get(model_type),
        "classifier_class": None
        if model_type in COMPOSITES
        else modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(model_type),
        **config(config_class),
        **({"sections": sections(config_class)} if model_type in COMPOSITES else {}),
        "lora_targets": constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(model_type),
        "lora_expert_names": conversion._MODEL_TO_CONVERSION_PATTERN.get(model_type)
        if conversion._MODEL_TO_CONVERSION_PATTERN.get(model_type) in conversion._MOE_TARGET_MODULE_MAPPING
        else None,
    }


def main():
    families = {model_type: family(model_type) for model_type in [*FAMILIES, *COMPOSITES, *TEXT_PARTS]}
    facts = {
        "transformers": transformers.__version__,
        "peft": peft.__version__,
        "lora_expert_names": {
            style: {"names": names, "fused": conversion._MOE_FUSED_TARGETS[style]}
            for style, names in conversion._MOE_TARGET_MODULE_MAPPING.items()
        },
        "families": families,
        "parts": parts(families),
    }
    print(json.dumps(facts, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
