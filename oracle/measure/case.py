"""What a case describes, built: the model, its adapters, the parameter groups, one batch.

    hf_config     what `config.json` holds, with "model_type"; the class is the first of "architectures", else the
                  family's language model
    config        the DeepSpeed config
    world         ranks
    seq           tokens of a sequence; target_seq: tokens of the target (T5), else seq
    attention     "sdpa" (default) or "eager"
    dtype         of the model as the user builds it ("float32" by default; the engine casts)
    zero_init     built under `deepspeed.zero.Init` (stage 3)
    checkpointing HF gradient checkpointing, not reentrant
    input_require_grads
    lora          {"r", "targets", "dropout", "save" (modules_to_save), "autocast" (adapter dtype, default true)}
    images, per_sequence   of a model that sees: `measure/towers.py`
    frozen        name fragments of the parameters that are not trained
    trainable_only  name fragments of the parameters that are trained
    two_groups    two optimizer groups, the second of the parameters with "norm" in their name
    client_optimizer, client_arguments   e.g. "torch.optim.SGD"
"""

import importlib

import deepspeed
import torch
import transformers
from transformers import initialization

from extract_model_facts import language_model_class
from measure import towers

CLASSIFIER = "ForSequenceClassification"
ENCODER_DECODERS = {"t5", "mt5"}


def stage(case):
    return case["config"].get("zero_optimization", {}).get("stage", 0)


def model_class(config):
    architectures = config.get("architectures")
    return getattr(transformers, architectures[0] if architectures else language_model_class(config["model_type"]))


def build_model(case):
    config = case["hf_config"]
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    loaded = transformers.AutoConfig.for_model(config["model_type"], **arguments)
    loaded.use_cache = False
    options = {"attn_implementation": case.get("attention") or "sdpa"}
    if case.get("dtype"):
        options["dtype"] = getattr(torch, case["dtype"])
    build = model_class(config)._from_config
    if not (case.get("zero_init") and stage(case) == 3):
        return build(loaded, **options)
    # Transformers' own initialization reaches into weights that are partitioned by then.
    with initialization.no_init_weights(), deepspeed.zero.Init(config_dict_or_path=case["config"]):
        model = build(loaded, **options)
    model.tie_weights()
    for parameter in model.parameters():
        for shard in (parameter.ds_tensor, parameter.ds_secondary_tensor):
            if shard is not None:
                shard.normal_(0.0, 0.02)
    return model


def adapted(model, lora):
    import peft

    arguments = peft.LoraConfig(
        r=lora["r"],
        target_modules=lora["targets"],
        lora_dropout=lora.get("dropout") or 0.0,
        modules_to_save=lora.get("save"),
    )
    autocast = lora.get("autocast")
    return peft.get_peft_model(model, arguments, autocast_adapter_dtype=autocast is None or autocast)


def build(case):
    model = build_model(case)
    if case.get("lora"):
        model = adapted(model, case["lora"])
    if case.get("trainable_only"):
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(any(part in name for part in case["trainable_only"]))
    for name, parameter in model.named_parameters():
        if any(part in name for part in case.get("frozen") or ()):
            parameter.requires_grad_(False)
    if case.get("checkpointing"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if case.get("input_require_grads"):
        model.enable_input_require_grads()
    return model.train()


def parameter_groups(case, model):
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not case.get("two_groups"):
        return [p for _, p in trained]
    return [
        {"params": [p for name, p in trained if "norm" not in name]},
        {"params": [p for name, p in trained if "norm" in name]},
    ]


def client_optimizer(case, groups):
    if not case.get("client_optimizer"):
        return None
    module, name = case["client_optimizer"].rsplit(".", 1)
    return getattr(importlib.import_module(module), name)(groups, **case.get("client_arguments") or {})


def element(case):
    """The number format of the model in training."""
    is_on = lambda key: case["config"].get(key, {}).get("enabled")
    return torch.bfloat16 if is_on("bf16") else torch.float16 if is_on("fp16") else torch.float32


def batch(case, rank):
    """Labels are the inputs, except where the model answers something else than the next token. Ranks that share a layer
    have to see the same."""
    config = case["hf_config"]
    size = case["config"]["train_micro_batch_size_per_gpu"]
    shares = case["config"].get("tensor_parallel", {}).get("autotp_size", 0) > 1
    generator = torch.Generator().manual_seed(0 if shares else rank)
    draw = lambda limit, *shape: torch.randint(0, limit, shape, generator=generator)
    vocabulary = config.get("text_config", config)["vocab_size"]
    ids = draw(vocabulary, size, case["seq"])
    if "images" in case or config["model_type"] == "whisper":
        return towers.batch(case, ids, element(case), generator)
    if CLASSIFIER in (config.get("architectures") or [""])[0]:
        return {"input_ids": ids, "labels": draw(2, size)}
    if config["model_type"] in ENCODER_DECODERS:
        return {"input_ids": ids, "labels": draw(config["vocab_size"], size, case.get("target_seq") or case["seq"])}
    return {"input_ids": ids, "labels": ids}
