"""The parameters of models as transformers and PEFT build them: a long-lived process. The protocol is `json_lines`'s.

Models are built on the meta device, so a size costs nothing and no weight is ever made or loaded.

Greeting: {"transformers": "5.22.2", "peft": "0.21.2"}
Request:  {"id": 1, "config": {<config.json>}}
          The class is the first of `architectures`, else the family's language model.
          Or {"id": 1, "small": "<model_type>"}: any type with a causal language model, with its class's own defaults
          and small sizes; the answer also has its "config". {"id": 1, "types": true} lists those types.
          With "lora": {<arguments of peft.LoraConfig>} the model is wrapped by `peft.get_peft_model`.
Answer:   {"id": 1, "class": "LlamaForCausalLM",
           "parameters": [[name, shape, requires_grad], ...],   in the order of `named_parameters`
           "tied": {"<listed name>": ["<other name>", ...]},
           "modules": [[name, class], ...],                     those with a parameter in or below them
           "quantized": [module, ...]}                          those that bitsandbytes replaces; only without "lora"
          or {"id": 1, "error": "ValueError", "message": "..."}
"""

import os
import warnings

import json_lines

OUTPUT = json_lines.claim_output()

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import small_models  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from extract_model_facts import language_model_class  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402
from transformers.pytorch_utils import Conv1D  # noqa: E402
from transformers.quantizers.base import HfQuantizer  # noqa: E402
from transformers.quantizers.quantizers_utils import should_convert_module  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)


def class_name(config):
    architectures = config.get("architectures")
    return architectures[0] if architectures else language_model_class(config["model_type"])


def build(config):
    name = class_name(config)
    model_class = getattr(transformers, name)
    arguments = {key: value for key, value in config.items() if key != "model_type"}
    loaded = transformers.AutoConfig.for_model(config["model_type"], **arguments)
    with torch.device("meta"):
        return name, model_class(loaded)


def wrap(model, arguments):
    import peft

    with torch.device("meta"):
        return peft.get_peft_model(model, peft.LoraConfig(**arguments))


def inventory(model):
    parameters, names, tied = [], {}, {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = names.setdefault(id(parameter), name)
        if first == name:
            parameters.append([name, list(parameter.shape), parameter.requires_grad])
        else:
            tied.setdefault(first, []).append(name)
    modules = [
        [name, type(module).__name__]
        for name, module in model.named_modules()
        if next(module.parameters(), None) is not None
    ]
    return {"parameters": parameters, "tied": tied, "modules": modules}


def quantized(model):
    """What `integrations.bitsandbytes.replace_with_bnb_linear` replaces, by the rules it follows."""
    skipped = HfQuantizer.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
    return [
        name
        for name, module in model.named_modules()
        if (isinstance(module, Conv1D) or type(module) is torch.nn.Linear) and should_convert_module(name, skipped)
    ]


def small(model_type):
    config = small_models.small(model_type)
    name = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type]
    with torch.device("meta"):
        model = getattr(transformers, name)(config)
    return {"class": name, "config": small_models.as_file(config, name), **inventory(model)}


def answer(request):
    try:
        if request.get("types"):
            return {"types": small_models.types()}
        if "small" in request:
            return small(request["small"])
        name, model = build(request["config"])
        if "lora" in request:
            return {"class": name, **inventory(wrap(model, request["lora"]))}
        return {"class": name, **inventory(model), "quantized": quantized(model)}
    except Exception as error:  # a refused config is an answer too
        return {"error": type(error).__name__, "message": str(error)[:2000]}


def main():
    import peft

    greeting = {"transformers": transformers.__version__, "peft": peft.__version__}
    json_lines.serve(answer, greeting, OUTPUT)


if __name__ == "__main__":
    main()
