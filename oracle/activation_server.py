"""What real models keep for backward: a long-lived process. The protocol is `json_lines`'s.

A model of any type that has a causal language model, small, runs one forward and backward pass under the recorder, in
bfloat16 on the CPU. Gradients are let go as soon as they are complete, so what is counted is activations alone.

Greeting: {"transformers": "5.22.2", "torch": "..."}
Request:  {"id": 1, "small": "<model_type>", "checkpointing": false} or {"id": 1, "types": true}
Answer:   {"id": 1, "config": {<config.json>}, "parameters": [[name, shape], ...],
           "saved": bytes between the passes, "peak": bytes at the highest point of both}
          or {"id": 1, "error": "...", "message": "..."}
"""

import gc
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
from measure.recorder import Recorder  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

transformers.logging.set_verbosity(transformers.logging.CRITICAL + 10)
torch.set_num_threads(1)

SEQUENCES, LENGTH = 2, 128

# Larger ones keep sizes that are no longer small.
MOST_ELEMENTS = 60_000_000


def let_go(parameter):
    parameter.grad = None


def built(model_type, checkpointing):
    config = small_models.small(model_type)
    config.use_cache = False
    name = modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[model_type]
    model_class = getattr(transformers, name)
    with torch.device("meta"):
        elements = sum(parameter.numel() for parameter in model_class(config).parameters())
    if elements > MOST_ELEMENTS:
        raise ValueError(f"{elements} elements are too many")
    model = model_class._from_config(config, dtype=torch.bfloat16).train()
    if checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model, small_models.as_file(config, name)


def recorded(model_type, checkpointing):
    torch.manual_seed(0)
    model, config = built(model_type, checkpointing)
    tokens = torch.randint(3, small_models.VOCABULARY, (SEQUENCES, LENGTH))
    labels = tokens.clone()
    recorder = Recorder()
    for tensor in [*model.parameters(), *model.buffers(), tokens, labels]:
        recorder.see(tensor)
    for parameter in filter(lambda parameter: parameter.requires_grad, model.parameters()):
        parameter.register_post_accumulate_grad_hook(let_go)
    before = recorder.total
    with recorder:
        loss = model(input_ids=tokens, labels=labels).loss
        gc.collect()
        saved = recorder.total - before
        loss.backward()
    parameters = [[name, list(parameter.shape)] for name, parameter in model.named_parameters()]
    return {"config": config, "parameters": parameters, "saved": saved, "peak": recorder.peak - before}


def answer(request):
    try:
        if request.get("types"):
            return {"types": small_models.types()}
        return recorded(request["small"], request["checkpointing"])
    except Exception as error:  # a type that cannot be built is an answer too
        return {"error": type(error).__name__, "message": str(error)[:300]}
    finally:
        gc.collect()


def main():
    greeting = {"transformers": transformers.__version__, "torch": torch.__version__}
    json_lines.serve(answer, greeting, OUTPUT)


if __name__ == "__main__":
    main()
