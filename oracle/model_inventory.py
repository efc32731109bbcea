"""The parameters of models as transformers and PEFT build them: a long-lived process. The protocol is `json_lines`'s.

Models are built on the meta device, so a size costs nothing and no weight is ever made or loaded.

Greeting: {"transformers": "5.22.2", "peft": "0.21.2"}
Request:  {"id": 1, "config": {<config.json>}}
          The class is the first of `architectures`, else the family's language model.
          With "text_part": true only the text model of one that also sees, under the names it has alone.
          With "lora": {<arguments of peft.LoraConfig>} the model is wrapped by `peft.get_peft_model`.
Answer:   {"id": 1, "class": "LlamaForCausalLM",
           "parameters": [[name, shape, requires_grad], ...],   in the order of `named_parameters`
           "tied": {"<listed name>": ["<other name>", ...]},
           "modules": [[name, class], ...]}                     those with a parameter in or below them
          or {"id": 1, "error": "ValueError", "message": "..."}
"""

import os
import warnings

import json_lines

OUTPUT = json_lines.claim_output()

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HF_HUB_OFFLINE"] = "1"
warnings.filterwarnings("ignore")

import torch  # noqa: E402
import transformers  # noqa: E402
from extract_model_facts import language_model_class  # noqa: E402

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


def text_name(name):
    """The name a parameter of the text model has without the whole around it; None for the others."""
    for inside, alone in (("model.language_model.", "model."), ("language_model.", ""), ("lm_head.", "lm_head.")):
        if name.startswith(inside):
            return alone + name.removeprefix(inside)
    return None


def text_part(found):
    parameters = [[text_name(name), *rest] for name, *rest in found["parameters"] if text_name(name)]
    tied = {text_name(name): [text_name(other) for other in others] for name, others in found["tied"].items()}
    return {"parameters": parameters, "tied": tied, "modules": []}


def answer(request):
    try:
        name, model = build(request["config"])
        if request.get("text_part"):
            return {"class": name, **text_part(inventory(model))}
        if "lora" in request:
            model = wrap(model, request["lora"])
        return {"class": name, **inventory(model)}
    except Exception as error:  # a refused config is an answer too
        return {"error": type(error).__name__, "message": str(error)[:2000]}


def main():
    import peft

    greeting = {"transformers": transformers.__version__, "peft": peft.__version__}
    json_lines.serve(answer, greeting, OUTPUT)


if __name__ == "__main__":
    main()
