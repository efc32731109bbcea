"""TRL's fused language-model head on a bare Llama: the cases `head-trl_fused` of `knowledge/measured/heads.json`.

`python oracle/measure/trl_head.py` prints the cases. The same program reproduces the cases `head-default`.
"""

import gc
import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from recorder import Recorder

SHAPE = {"h": 64, "a": 4, "k": 2, "i": 176, "L": 2}
# A vocabulary of one tile, and one of three.
VOCABULARIES = (503, 70000)


def case(head, dtype, batch, length, vocabulary):
    from trl.trainer.utils import add_fused_lm_head

    config = LlamaConfig(hidden_size=SHAPE["h"], num_attention_heads=SHAPE["a"], num_key_value_heads=SHAPE["k"],
                         intermediate_size=SHAPE["i"], num_hidden_layers=SHAPE["L"], vocab_size=vocabulary,
                         tie_word_embeddings=False, use_cache=False)
    model = LlamaForCausalLM(config).to(dtype).train()
    if head == "head-trl_fused":
        # What `SFTTrainer` asks for.
        add_fused_lm_head(model, outputs=("log_probs", "entropy", "is_top1"))
    tokens = torch.randint(0, vocabulary, (batch, length))
    labels = tokens.clone()
    recorder = Recorder()
    for tensor in [*model.parameters(), *model.buffers(), tokens, labels]:
        recorder.see(tensor)
    before = recorder.total
    with recorder:
        if head == "head-trl_fused":
            output = model(input_ids=tokens, labels=labels, fused_lm_head=True)
            loss = (-output.log_probs).sum() / output.label_mask.sum().clamp(min=1)
        else:
            output = model(input_ids=tokens, labels=labels)
            loss = output.loss
        forward = recorder.peak - before
        del output
        gc.collect()
        saved = recorder.total - before
        recorder.restart()
        loss.backward()
        backward = recorder.peak - before
    return {
        "name": head, "set": "head", "family": "llama", "shape": {**SHAPE, "v": vocabulary}, "batch": batch,
        "seq": length, "dtype": {torch.bfloat16: "bf16", torch.float32: "fp32"}[dtype],
        "engine": "none (model only, no ZeRO)", "peak": {"forward": forward, "backward": backward}, "saved": saved,
    }


if __name__ == "__main__":
    for dtype in (torch.bfloat16, torch.float32):
        print(json.dumps(case("head-default", dtype, 2, 24, 503)))
        for batch in (2, 1):
            for vocabulary in VOCABULARIES:
                print(json.dumps(case("head-trl_fused", dtype, batch, 24, vocabulary)))
