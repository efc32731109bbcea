"""What transformers and PEFT know about model families, as data: `knowledge/models/families.json`.

    python oracle/extract_model_facts.py > knowledge/models/families.json

For every family of `FAMILIES`: the classes its models are built with, the default of every config key that can
change a shape or adds dropout, the other names of config keys, and what `peft.LoraConfig` targets when no target is named.
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
    bert bloom cohere cohere2 deepseek_v2 deepseek_v3 falcon gemma gemma2 gemma3_text glm glm4 glm4_moe gpt2
    gpt_bigcode gpt_neo gpt_neox gpt_oss gptj granite granitemoe llama llama4_text ministral3 mistral mixtral
    modernbert mt5 olmo olmo2 olmo3 olmoe opt phi phi3 phimoe qwen2 qwen2_moe qwen3 qwen3_moe roberta smollm3
    stablelm starcoder2 t5 whisper
""".split()

# Text models inside others, with the shapes of another family and defaults of their own.
TEXT_PARTS = {"qwen2_vl_text": "qwen2", "qwen2_5_vl_text": "qwen2"}

ENCODERS = {"bert", "roberta", "modernbert"}

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


def defaults(config_class):
    found = {}
    for field in dataclasses.fields(config_class):
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if field.name in IRRELEVANT or field.name.endswith("_token_id"):
            continue
        if "drop" in field.name and isinstance(default, (int, float)):
            # Dropout adds no parameter, but a tensor to every place it works at.
            found[field.name] = float(default)
        elif default is None or isinstance(default, (bool, int)) or field.name == "feed_forward_proj":
            found[field.name] = default
    return found


def language_model_class(model_type):
    mappings = LANGUAGE_MODELS[::-1] if model_type in ENCODERS else LANGUAGE_MODELS
    return next(mapping[model_type] for mapping in mappings if model_type in mapping)


def family(model_type):
    config_class = CONFIG_MAPPING[model_type]
    model_type = TEXT_PARTS.get(model_type, model_type)
    return {
        "language_model_class": language_model_class(model_type),
        "classifier_class": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.get(model_type),
        "defaults": defaults(config_class),
        "aliases": dict(config_class.attribute_map),
        "lora_targets": constants.TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING.get(model_type),
        "lora_expert_names": conversion._MODEL_TO_CONVERSION_PATTERN.get(model_type)
        if conversion._MODEL_TO_CONVERSION_PATTERN.get(model_type) in conversion._MOE_TARGET_MODULE_MAPPING
        else None,
    }


def main():
    facts = {
        "transformers": transformers.__version__,
        "peft": peft.__version__,
        "lora_expert_names": {
            style: {"names": names, "fused": conversion._MOE_FUSED_TARGETS[style]}
            for style, names in conversion._MOE_TARGET_MODULE_MAPPING.items()
        },
        "families": {model_type: family(model_type) for model_type in [*FAMILIES, *TEXT_PARTS]},
    }
    print(json.dumps(facts, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
