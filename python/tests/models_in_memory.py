"""Runs where transformers is: tiny random models, asked about in memory and by their config.json."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, get_peft_model

import zeropilot as zp

SMALL = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
LLAMA = transformers.LlamaConfig(**SMALL, intermediate_size=96, num_key_value_heads=2)
MODELS: dict[str, Any] = {
    "llama": lambda: transformers.LlamaForCausalLM(LLAMA),
    "gpt2": lambda: transformers.GPT2LMHeadModel(
        transformers.GPT2Config(n_embd=64, n_layer=2, n_head=4, vocab_size=128)
    ),
    "qwen3": lambda: transformers.Qwen3ForCausalLM(
        transformers.Qwen3Config(
            **SMALL, intermediate_size=96, num_key_value_heads=2, head_dim=16, tie_word_embeddings=True
        )
    ),
    "t5": lambda: transformers.T5ForConditionalGeneration(
        transformers.T5Config(d_model=64, d_ff=96, d_kv=16, num_layers=2, num_heads=4, vocab_size=128)
    ),
    "bert": lambda: transformers.BertForSequenceClassification(
        transformers.BertConfig(**SMALL, intermediate_size=96, num_labels=2)
    ),
}
QUESTION: dict[str, Any] = {"gpus": "2x24GB", "seq_len": 64, "micro_batch": 2}


def without_name(answer: zp.Memory) -> dict[str, Any]:
    data = answer.to_dict()
    del data["model"]
    return data


def of_config(model: Any, **question: Any) -> zp.Memory:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "config.json"
        values = {**model.config.to_dict(), "architectures": [type(model).__name__]}
        path.write_text(json.dumps(values, default=str))
        return zp.memory(path, **question)


for name, make in MODELS.items():
    model = make()
    for stage in (0, 2, 3):
        question = {**QUESTION, "stage": stage}
        live = zp.memory(model, **question)
        assert live.activations.program == "own", name
        assert without_name(live) == without_name(of_config(model, **question)), (name, stage)
    print(name)

# Weights of 32 bits, and moments of what is trained alone.
model = MODELS["llama"]()
for parameter in model.model.layers[0].parameters():
    parameter.requires_grad = False
live = zp.memory(model, **QUESTION, stage=1, precision="fp32")
trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
moments = live.tensors.after_step.device["first_moment"]
# Half of it each on two ranks, padded by the engine.
assert 4 * trained // 2 <= moments <= 4 * trained // 2 + 64, (moments, trained)
print("frozen")

model = transformers.LlamaModel(LLAMA)
live = zp.memory(model, **QUESTION, stage=0, precision="fp32")
total = sum(p.numel() for p in model.parameters())
assert live.tensors.after_step.device["parameters"] == 4 * total
print("headless")

model = get_peft_model(MODELS["llama"](), LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
live = zp.memory(model, **QUESTION, stage=0, precision="fp32")
trained = sum(p.numel() for p in model.parameters() if p.requires_grad)
assert live.tensors.after_step.device["first_moment"] == 4 * trained
assert torch.__version__
print("peft")
